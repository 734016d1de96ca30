"""Queries, keys and values, and scores: every query with every key."""

from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, asking_words, row_spots, short
from attention_viz.lesson.links import (
    HeadLink,
    asking_position,
    opening_word,
    positioned_words,
    pressed_positions,
    scene_link,
    trained_words,
    word_positions,
)
from attention_viz.lesson.own_head import D_K, D_MODEL, own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, quoted, signed, signs, texts
from attention_viz.operation.attention import attend
from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.trace.trace import Trace
from attention_viz.views import products, roles

_WIDTHS = ("2", "3", "4", "6")


def _link(scene: Scene) -> HeadLink:
    return scene_link(scene, asking_position(scene))


def _own_shares(scene: Scene) -> tuple[float, float]:
    """Return mean weights on oneself: raw vectors, trained head."""
    trace, link = scene.trained(), _link(scene)
    x, words = trace.layer(link.layer).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    plain = attend(x[None], x[None], x[None], scale=1.0).weights[0]
    weights = trace.weights(link.layer, link.head)
    return float(plain.diagonal()[words].mean()), float(weights.diagonal()[words].mean())


def _ask_roles(scene: Scene) -> Ask:
    """Use a trained head: seeded matrices say nothing of words."""
    link, shares = _link(scene), _own_shares(scene)
    before, after = map(signed, shares)
    return Ask(
        "When does a word take more from itself?",
        f"A word takes {before} from itself without matrices, {after} with them",
        f"{scene.called}, layer {link.layer}, head {link.head}; mean over the words",
        ("vectors as they are", "with learned matrices"),
        shares,
        place=CatalogueHead.of(scene.trained(), link.layer, link.head),
    )


def _show_roles(scene: Scene) -> Shown:
    d_v, link = int(_CONTROL_ROLES.value(scene)), _link(scene)
    trained, trace = scene.trained(), own_head(scene, D_K, d_v)
    call, labels = trained.attention(link.layer), trained.query_tokens().names
    plain, own = _own_shares(scene)
    facts = {
        **texts(layer=link.layer, head=link.head, wide=call.query.shape[-1], vector=_width(trained, link.layer)),
        **texts(d_model=D_MODEL, d_k=trace.attention(0).key.shape[-1], d_v=trace.attention(0).value.shape[-1]),
        **quoted(labels, word=link.query, other=int(call.scores[link.head, link.query].argmax())),
        **signs(plain=plain, own=own),
        "model": scene.called,
    }
    says = (
        f"A small example with random matrices, so the numbers mean nothing: each token has {facts['d_k']} numbers "
        f"as a query, {facts['d_k']} as a key and {facts['d_v']} as a value."
    )
    figure = roles(trace, 0, 0, notation=scene.notation, theme=scene.theme)
    upright = scene.notation == "columns"
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene), upright=upright), drawn=True)


def _width(trace: Trace, layer: int) -> int:
    x = trace.layer(layer).embeddings
    assert x is not None  # these models keep them
    return x.shape[-1]


_CONTROL_ROLES = Control("Value width", lambda scene: {width: width for width in _WIDTHS}, lambda scene: "3")


# The text writes out that many products, the largest.
_NAMED = 4


def _written(cell: Arithmetic) -> str:

    def number(value: float) -> str:
        written = signed(value, 2)
        return f"({written})" if written[0] == "−" else written

    ranked = sorted(cell.terms, key=lambda term: -abs(term.product))
    products = [f"{number(term.factors[0][1])} · {number(term.factors[1][1])}" for term in ranked[:_NAMED]]
    if others := ranked[_NAMED:]:
        products.append(f"{number(sum(term.product for term in others))} from {len(others)} more")
    return " + ".join(products)


def _ask_scores(scene: Scene) -> Ask:
    """Use a real head: seeded numbers say nothing of words."""
    trace, query = scene.trained(), int(_CONTROL_SCORES.value(scene))
    link, labels = scene_link(scene, query), trace.query_tokens().names
    scores = trace.attention(link.layer).scores[link.head, query].tolist()
    best = max(range(len(scores)), key=scores.__getitem__)
    return Ask(
        f"Whose key suits the query of {short(labels[query])} best?",
        f"{short(labels[best])} scores most for {short(labels[query])}: {signed(scores[best], 1)}",
        f"{scene.called}, layer {link.layer}, head {link.head}: query · key",
        labels,
        tuple(scores),
        shown=tuple(signed(score, 1) for score in scores),
        pressed=pressed_positions(trace),
        query=query,
        place=CatalogueHead.of(trace, link.layer, link.head, (query, best)),
    )


def _show_scores(scene: Scene) -> Shown:
    trace, query = scene.trained(), int(_CONTROL_SCORES.value(scene))
    link, labels = scene_link(scene, query), trace.query_tokens().names
    layer, head = link.layer, link.head
    scores = trace.attention(layer).scores[head]
    row, key = scores[query], int(scores[query].argmax())
    cell = open_cell(open_head(trace, layer, head), "scores", query, key)
    facts = {
        **texts(layer=layer, head=head, d_k=len(cell.terms), model=scene.called),
        **quoted(labels, word=query, other=key),
        **signs(2, score=cell.total, lowest=row.min()),
        "sum": _written(cell),
        "rows": counted(len(row), "row"),
        "columns": counted(len(row), "column"),
        "cells": counted(scores.numel(), "score"),
    }
    figure = products(trace, layer, head, query, key, notation=scene.notation, theme=scene.theme)
    says = f"The query of “{facts['word']}” suits the key of “{facts['other']}” best, with {facts['score']}."
    return Shown(facts, figure, says)


_CONTROL_SCORES = Control("Query word", positioned_words, opening_word)

LESSONS = {
    "roles": Lesson(
        "Queries, keys and values",
        7,
        _ask_roles,
        _show_roles,
        _CONTROL_ROLES,
        "project",
        deeper=("steps",),
        words=trained_words,
    ),
    "scores": Lesson("Scores", 6, _ask_scores, _show_scores, _CONTROL_SCORES, "score", deeper=("steps",)),
}
