"""Queries, keys and values, and scores: every query with every key."""

from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, short
from attention_viz.lesson.links import (
    opening_word,
    positioned_words,
    pressed_positions,
    scene_link,
)
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, quoted, signed, signs, texts
from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.views import products

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
    "scores": Lesson("Scores", 6, _ask_scores, _show_scores, _CONTROL_SCORES, "score", deeper=("steps",)),
}
