"""Scores: every query with every key, one cell opened as a sum."""

from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import opening_position, positioned_words, pressed_positions, strongest_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed
from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.views import products

__all__ = ["LESSON"]

# Products that the text writes out: the largest.
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


def _ask(scene: Scene) -> Ask:
    """Use a real head: seeded numbers say nothing of words."""
    trace, query = scene.trained(), int(_CONTROL.value(scene))
    link, labels = strongest_link(trace, query), trace.query_tokens().written
    scores = trace.attention(link.layer).scores[link.head, query].tolist()
    best = max(range(len(scores)), key=scores.__getitem__)
    return Ask(
        f"Whose key suits the query of {short(labels[query])} best?",
        f"{short(labels[best])} scores most for {short(labels[query])}: {signed(scores[best], 1)}",
        f"{scene.called}, layer {link.layer}, head {link.head}: q · k",
        tuple(offered(labels).values()),
        tuple(scores),
        shown=tuple(signed(score, 1) for score in scores),
        pressed=pressed_positions(trace),
        query=query,
        place=CatalogueHead.of(trace, link.layer, link.head, (query, best)),
    )


def _show(scene: Scene) -> Shown:
    trace, query = scene.trained(), int(_CONTROL.value(scene))
    link, labels = strongest_link(trace, query), trace.query_tokens().written
    layer, head = link.layer, link.head
    scores = trace.attention(layer).scores[head]
    row, key = scores[query], int(scores[query].argmax())
    cell = open_cell(open_head(trace, layer, head), "scores", query, key)
    facts = {
        "model": scene.called,
        "layer": str(layer),
        "head": str(head),
        "word": in_words(labels[query]),
        "other": in_words(labels[key]),
        "sum": _written(cell),
        "score": signed(cell.total, 2),
        "lowest": signed(float(row.min()), 2),
        "rows": counted(len(row), "row"),
        "columns": counted(len(row), "column"),
        "cells": counted(scores.numel(), "score"),
        "d_k": str(len(cell.terms)),
    }
    figure = products(trace, layer, head, query, key, notation=scene.notation, theme=scene.theme)
    says = f"The query of “{facts['word']}” suits the key of “{facts['other']}” best, with {facts['score']}."
    return Shown(facts, figure, says)


_CONTROL = Control("Word that looks", positioned_words, lambda scene: str(opening_position(scene.trained())))

LESSON = Lesson(
    "Scores",
    6,
    _ask,
    _show,
    _CONTROL,
    "score",
    deeper=("steps",),
    covers=("scores: one cell opened as the sum over dimensions of query × key",),
)
