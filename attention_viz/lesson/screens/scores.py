"""Scores: every query with every key, one cell opened as the sum that it is."""

from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import opening_position, strongest_link
from attention_viz.lesson.own_head import own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed, telling
from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.views import products

__all__ = ["LESSON"]

_MODEL = "all-MiniLM-L6-v2"


def _written(cell: Arithmetic) -> str:
    """The products as one writes them down, a negative number in brackets."""

    def number(value: float) -> str:
        written = signed(value, 2)
        return f"({written})" if written[0] == "−" else written

    return " + ".join(f"{number(term.factors[0][1])} · {number(term.factors[1][1])}" for term in cell.terms)


def _ask(scene: Scene) -> Ask:
    """In a real head: what numbers from a seed suit says nothing of the words."""
    trace = scene.run(_MODEL, scene.text)
    query = opening_position(trace)
    link, labels = strongest_link(trace, query), trace.query_tokens().written
    scores = trace.attention(link.layer).scores[link.head, query].tolist()
    best = max(range(len(scores)), key=scores.__getitem__)
    return Ask(
        f"Whose key suits the query of {short(labels[query])} best?",
        f"{short(labels[best])} scores most: {signed(scores[best], 1)}",
        f"{_MODEL}, layer {link.layer}, head {link.head}: q · k",
        tuple(offered(labels).values()),
        tuple(scores),
        shown=tuple(signed(score, 1) for score in scores),
        query=query,
    )


def _show(scene: Scene) -> Shown:
    query, trace = int(_CONTROL.value(scene)), own_head(scene)
    row = trace.attention(0).scores[0, query]
    key = int(row.argmax())
    cell = open_cell(open_head(trace, 0, 0), "scores", query, key)
    facts = {
        "word": in_words(scene.words[query]),
        "other": in_words(scene.words[key]),
        "sum": _written(cell),
        "score": signed(cell.total, 2),
        "lowest": signed(float(row.min()), 2),
        "rows": counted(len(row), "row"),
        "columns": counted(len(row), "column"),
        "cells": counted(trace.attention(0).scores.numel(), "score"),
        "d_k": str(len(cell.terms)),
    }
    figure = products(trace, 0, 0, query, key, notation=scene.notation, theme=scene.theme)
    says = f"The query of “{facts['word']}” suits the key of “{facts['other']}” best, with {facts['score']}."
    return Shown(facts, figure, says)


_CONTROL = Control("Word that looks", lambda scene: offered(scene.words), lambda scene: telling(scene.words))

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
