"""Scaling: large scores saturate the softmax."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import signed, signs, texts, weight_texts
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import RowStatistics, open_head, row_statistics
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views import saturation

_WIDTHS = ("4", "16", "64")
# Several sets of weights: one set's luck would hide the rule in a short sentence.
_RUNS = 10
_HEADS = 2


@lru_cache(maxsize=24)
def _traces(text: str, seed: int, d_k: int, heads: int = 1) -> tuple[Trace, ...]:
    seeds = range(_RUNS * seed, _RUNS * (seed + 1))
    return tuple(Scratch(heads * d_k, heads, one, positions="none").trace(text) for one in seeds)


def _statistics(traces: Sequence[Trace], scale: str) -> tuple[float, float]:
    rows: list[RowStatistics] = [row_statistics(open_head(trace, 0, 0, scale=scale).weights) for trace in traces]
    return fmean(float(one.largest.mean()) for one in rows), fmean(float(one.gradient.mean()) for one in rows)


def _ask_scaling(scene: Scene) -> Ask:
    largest = [_statistics(_traces(scene.text, scene.seed, width), "none")[0] for width in map(int, _WIDTHS)]
    best = max(range(len(largest)), key=largest.__getitem__)
    return Ask(
        "Scores of wider vectors spread further. At which width does one word take most?",
        f"With {_WIDTHS[best]} numbers in a query and a key, one word takes {weight_text(largest[best])}",
        f"our own heads, {_RUNS} seeds, nothing scaled: the largest weight of a row, on average",
        tuple(f"{width} numbers" for width in _WIDTHS),
        tuple(largest),
        pressed=_WIDTHS,
        drawn=True,
    )


def _show_scaling(scene: Scene) -> Shown:
    d_k = int(_CONTROL_SCALING.value(scene))
    widths = {width: _traces(scene.text, scene.seed, width) for width in map(int, _WIDTHS)}
    scores = [trace.attention(0).scores[0] for trace in widths[d_k]]
    bare, scaled = _statistics(widths[d_k], "none"), _statistics(widths[d_k], "d_k")
    several = _traces(scene.text, scene.seed, d_k, _HEADS)
    spread = fmean(float(one.std(correction=0)) for one in scores)
    facts = {
        **texts(d_k=d_k, runs=_RUNS, heads=_HEADS, d_model=_HEADS * d_k),
        **signs(2, spread=spread, scaled_spread=spread / math.sqrt(d_k)),
        "largest": signed(max(float(one.max()) for one in scores), 1),
        **weight_texts(bare=bare[0], scaled=scaled[0]),
        **signs(bare_gradient=bare[1], scaled_gradient=scaled[1]),
        **weight_texts(by_d_k=_statistics(several, "d_k")[0], by_d_model=_statistics(several, "d_model")[0]),
    }
    drawn = [trace for traces in widths.values() for trace in traces]
    says = (
        f"At d_k = {d_k}, the largest weight of a row is {facts['bare']} without the scale and {facts['scaled']} with "
        f"it; the gradient is {facts['bare_gradient']} and {facts['scaled_gradient']}."
    )
    return Shown(facts, saturation(*drawn, chosen=d_k, theme=scene.theme), says, drawn=True)


_CONTROL_SCALING = Control("Query/key width", lambda scene: {one: one for one in _WIDTHS}, lambda scene: "64")

LESSONS = {
    "scaling": Lesson("Scaling", 7, _ask_scaling, _show_scaling, _CONTROL_SCALING, "scaled", deeper=("steps",)),
}
