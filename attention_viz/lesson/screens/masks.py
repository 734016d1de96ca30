"""Masks: who may look at whom, why blocked scores become −∞, and what a merely large negative number does instead."""

import math

import torch

from attention_viz.edits.kinds.masks import Allow
from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed
from attention_viz.models.inputs.padding import trace_filled
from attention_viz.operation.attention import attend
from attention_viz.operation.blocking import block_row
from attention_viz.operation.masks import causal, combine, padding
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from attention_viz.views import heatmap
from attention_viz.views.style.wording import with_minus

__all__ = ["LESSON"]

_OPTIONS = {
    "none": "none: everybody looks at everybody",
    "causal": "causal: nobody looks ahead",
    "padding": "padding: nobody looks at what fills up",
    "both": "causal and padding",
}
_D_MODEL = 8
# As if the other sentence of a batch were longer by so many words.
_FILLING = 2
_LARGE, _SMALLER = -1e9, -1e4
# What a row with nothing left becomes, by the outcome of the softmax.
_OUTCOMES = {"ignored": "the weights of no mask at all", "uniform": "the same share for every cell"}


def _length(scene: Scene, mask: str) -> int:
    """The words, and the filling where there is some to block."""
    return len(scene.words) + (_FILLING if mask in ("padding", "both") else 0)


def _trace(scene: Scene, mask: str, *, on: bool = True) -> Trace:
    """The sentence through one head of ours, filled up where the mask is about padding; with the mask put on or not."""
    scratch = Scratch(_D_MODEL, 1, scene.seed, positions="none")
    length = _length(scene, mask)
    ids = torch.tensor([1] * len(scene.words) + [0] * (length - len(scene.words)))
    parts = {"causal": [causal(length)], "padding": [padding(ids, 0)], "both": [causal(length), padding(ids, 0)]}
    added = [Allow(combine(*parts[mask]).expand(length, length))] if on and mask in parts else []
    return trace_filled(scratch, scene.text, length, added)


def _ask(scene: Scene) -> Ask:
    mask = _CONTROL.value(scene)
    length = _length(scene, mask)
    allowed = _trace(scene, mask).attention(0).head(0).allowed
    open_cells = [length] * length if allowed is None else allowed.sum(dim=-1).tolist()
    labels = [*scene.words, *["(filling)"] * (length - len(scene.words))]
    most = max(open_cells)
    return Ask(
        f"Mask “{mask}”: who may look at the most words?",
        f"Mask “{mask}”: {most} at most, {min(open_cells)} at least",
        "counted in the mask: the cells that each row has open",
        tuple(offered(labels).values()),
        tuple(map(float, open_cells)),
        shown=tuple(map(str, open_cells)),
    )


def _show(scene: Scene) -> Shown:
    mask = _CONTROL.value(scene)
    trace, open_trace = _trace(scene, mask), _trace(scene, mask, on=False)
    one = trace.attention(0).head(0)
    cells = one.weights.numel()
    blocked = 0 if one.allowed is None else int((~one.allowed).sum())
    row, filling = len(scene.words) // 2, len(one.weights) - len(scene.words)
    facts = {
        "mask": _OPTIONS[mask].partition(":")[0],
        "blocked": counted(blocked, "cell"),
        "cells": str(cells),
        "word": in_words(scene.words[row]),
        "before": f"{float(open_trace.weights(0, 0)[row, 0]):.3f}",
        "after": f"{float(one.weights[row, 0]):.3f}",
        "first": in_words(scene.words[0]),
        "sum": f"{float(one.weights[row].sum()):.3f}",
        "large": with_minus(f"{_LARGE:,.0f}"),
        "smaller": with_minus(f"{_SMALLER:,.0f}"),
        "filling": f" and {counted(filling, 'filling')} at the end" if filling else "",
        "d_k": str(one.query.shape[-1]),
        **_nothing_left(open_trace),
    }
    hatched = f"{facts['blocked']} of {cells} {'is' if blocked == 1 else 'are'} blocked and drawn hatched"
    says = f"With the mask “{facts['mask']}”, {hatched if blocked else 'nothing is blocked'}."
    return Shown(facts, heatmap(trace, 0, 0, theme=scene.theme), says)


def _nothing_left(trace: Trace) -> dict[str, str]:
    """What becomes of a row with every cell blocked: by −∞, by a large negative number, and by our function."""
    one = trace.attention(0).head(0)
    nothing = torch.zeros(len(one.weights), dtype=torch.bool)
    plain, large = (
        block_row(one.scaled[0], nothing, values=[value], precisions=[torch.float32])[0]
        for value in (-math.inf, _LARGE)
    )
    (smaller,) = block_row(one.scaled[0], nothing, values=[_SMALLER], precisions=[torch.float32])
    ours = attend(one.query, one.key, one.value, nothing.expand(one.shape)).weights[0]
    half = block_row(one.scaled[0], nothing, values=[_LARGE], precisions=[torch.float16])[0]
    return {
        "plain": plain.outcome,
        "remains": _OUTCOMES.get(smaller.outcome, smaller.outcome),
        "uniform": f"{float(large.weights[0]):.3f}",
        "ours": f"{float(ours.max()):.3f}",
        "half": signed(half.rounded, 0).replace("inf", "∞"),
    }


_CONTROL = Control("Mask", lambda scene: _OPTIONS, lambda scene: "causal")

LESSON = Lesson(
    "Masks",
    8,
    _ask,
    _show,
    _CONTROL,
    "mask",
    deeper=("masks",),
    covers=(
        "mask: blocked cells get −∞",
        "causal",
        "padding",
        "padding and causal combined",
        "−∞ against a large negative number; a row with nothing left",
    ),
)
