"""Scaling: large scores leave the softmax nothing to learn from."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import signed
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import RowStatistics, open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views import saturation

__all__ = ["LESSON"]

_WIDTHS = ("4", "16", "64")
# Several sets of weights, so that a short sentence shows the rule and not one set's luck.
_RUNS = 10
_HEADS = 2


@lru_cache(maxsize=24)
def _traces(text: str, seed: int, d_k: int, heads: int = 1) -> tuple[Trace, ...]:
    seeds = range(_RUNS * seed, _RUNS * (seed + 1))
    return tuple(Scratch(heads * d_k, heads, one, positions="none").trace(text) for one in seeds)


def _statistics(traces: Sequence[Trace], scale: str) -> tuple[float, float]:
    rows: list[RowStatistics] = [row_statistics(open_head(trace, 0, 0, scale=scale).weights) for trace in traces]
    return fmean(float(one.largest.mean()) for one in rows), fmean(float(one.gradient.mean()) for one in rows)


def _ask(scene: Scene) -> Ask:
    largest = [_statistics(_traces(scene.text, scene.seed, width), "none")[0] for width in map(int, _WIDTHS)]
    best = max(range(len(largest)), key=largest.__getitem__)
    return Ask(
        "Without ÷ √d_k, at which width does one word take most?",
        f"At d_k = {_WIDTHS[best]}, one word takes {signed(largest[best])}",
        f"our own heads, {_RUNS} seeds: the largest weight of a row, on average",
        tuple(f"d_k = {width}" for width in _WIDTHS),
        tuple(largest),
        pressed=_WIDTHS,
    )


def _show(scene: Scene) -> Shown:
    d_k = int(_CONTROL.value(scene))
    widths = {width: _traces(scene.text, scene.seed, width) for width in map(int, _WIDTHS)}
    scores = [trace.attention(0).scores[0] for trace in widths[d_k]]
    bare, scaled = _statistics(widths[d_k], "none"), _statistics(widths[d_k], "d_k")
    several = _traces(scene.text, scene.seed, d_k, _HEADS)
    spread = fmean(float(one.std(correction=0)) for one in scores)
    facts = {
        "d_k": str(d_k),
        "runs": str(_RUNS),
        "spread": signed(spread, 2),
        "scaled_spread": signed(spread / math.sqrt(d_k), 2),
        "largest": signed(max(float(one.max()) for one in scores), 1),
        "bare": signed(bare[0]),
        "bare_gradient": signed(bare[1]),
        "scaled": signed(scaled[0]),
        "scaled_gradient": signed(scaled[1]),
        "heads": str(_HEADS),
        "d_model": str(_HEADS * d_k),
        "by_d_k": signed(_statistics(several, "d_k")[0]),
        "by_d_model": signed(_statistics(several, "d_model")[0]),
    }
    drawn = [trace for traces in widths.values() for trace in traces]
    says = (
        f"At d_k = {d_k}, the largest weight of a row is {facts['bare']} without the scale and {facts['scaled']} with "
        f"it; the gradient is {facts['bare_gradient']} and {facts['scaled_gradient']}."
    )
    return Shown(facts, saturation(*drawn, chosen=d_k, theme=scene.theme), says)


_CONTROL = Control("Numbers in a query and a key", lambda scene: {one: one for one in _WIDTHS}, lambda scene: "64")

LESSON = Lesson(
    "Scaling",
    7,
    _ask,
    _show,
    _CONTROL,
    "scaled",
    deeper=("steps",),
    covers=(
        "the scale: with and without, as d_k grows",
        "large dot products saturate the softmax, and its gradient vanishes",
        "√d_k against √d_model: equal with a single head, different with several",
    ),
)
