"""Scaling: scores spread like the root of their width, and are divided by it."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

import torch

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.links import asking_position, scene_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import quoted, signed, signs, texts, weight_texts
from attention_viz.scratch.model import Scratch
from attention_viz.steps.head import RowStatistics, open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views import saturation

_WIDTHS = (4, 16, 64)
# Several sets of weights: one set's luck would hide the rule in a short sentence.
_RUNS = 10


@lru_cache(maxsize=24)
def _traces(text: str, seed: int, d_k: int) -> tuple[Trace, ...]:
    seeds = range(_RUNS * seed, _RUNS * (seed + 1))
    return tuple(Scratch(d_k, 1, one, positions="none").trace(text) for one in seeds)


def _statistics(traces: Sequence[Trace], scale: str) -> tuple[float, float]:
    rows: list[RowStatistics] = [row_statistics(open_head(trace, 0, 0, scale=scale).weights) for trace in traces]
    return fmean(float(one.largest.mean()) for one in rows), fmean(float(one.gradient.mean()) for one in rows)


def _spread(traces: Sequence[Trace]) -> float:
    """Return the standard deviation of all scores of several sets of matrices."""
    return float(torch.stack([trace.attention(0).scores[0] for trace in traces]).std(correction=0))


def _ask_scaling(scene: Scene) -> Ask:
    """Continue 4 and 16 products with 64: as the root, not in proportion."""
    spreads = [_spread(_traces(scene.text, scene.seed, width)) for width in _WIDTHS]
    *_, before, last = _WIDTHS
    sizes = [math.isqrt(before), math.isqrt(last), before, last]
    nearest = min(range(len(sizes)), key=lambda at: abs(sizes[at] - spreads[-1]))
    measured = signed(spreads[-1], 2)
    return Ask(
        translate("By how much do scores of {width} products spread, four times as many again?", width=last),
        translate(
            "Scores of {width} products spread by {spread}; √{width} is {root}",
            **{"width": last, "spread": measured, "root": math.isqrt(last)},
        ),
        translate("our own heads with random numbers, {runs} sets of them", runs=_RUNS),
        tuple(translate("about {number}", number=size) for size in sizes),
        tuple(float(at == nearest) for at in range(len(sizes))),
        shown=tuple(measured if at == nearest else "" for at in range(len(sizes))),
        premise=translate(
            "Scores of {few} products spread by {narrow}. Scores of {more} products, four times as many, spread by "
            "{wider}.",
            **{"few": _WIDTHS[0], "narrow": signed(spreads[0], 2), "more": before, "wider": signed(spreads[1], 2)},
        ),
        reasons=_reasons(spreads[1]) if nearest == 1 else (),
    )


def _reasons(wider: float) -> tuple[str, ...]:
    few, before, last = _WIDTHS
    return (
        translate("Scores of {more} products already spread by {wider}.", more=before, wider=signed(wider, 2)),
        "",
        translate(
            "From {few} to {more} products, the spread about doubles, and from {more} to {most} it does so again.",
            few=few,
            more=before,
            most=last,
        ),
        translate("Products above and below zero partly cancel, so the spread grows more slowly than their number."),
    )


def _show_scaling(scene: Scene) -> Shown:
    d_k = int(_CONTROL_SCALING.value(scene))
    widths = {width: _traces(scene.text, scene.seed, width) for width in _WIDTHS}
    bare, scaled = _statistics(widths[d_k], "none"), _statistics(widths[d_k], "d_k")
    spread = _spread(widths[d_k])
    facts = {
        **texts(d_k=d_k, runs=_RUNS, root=math.isqrt(d_k)),
        **signs(2, spread=spread, scaled_spread=spread / math.sqrt(d_k)),
        **weight_texts(bare=bare[0], scaled=scaled[0]),
        **signs(bare_gradient=bare[1], scaled_gradient=scaled[1]),
        **_trained(scene),
    }
    drawn = [trace for traces in widths.values() for trace in traces]
    says = translate(
        "With four times the products, scores spread about twice as far. At a width of {d_k}, the largest weight of a "
        "row is {bare} without the scale and {scaled} with it; the gradient is {bare_gradient} and {scaled_gradient}.",
        **{name: facts[name] for name in ("d_k", "bare", "scaled", "bare_gradient", "scaled_gradient")},
    )
    return Shown(facts, saturation(*drawn, chosen=d_k, theme=scene.theme), says, drawn=True)


def _trained(scene: Scene) -> dict[str, str]:
    """Return the trained head's largest score, scaled as it enters the softmax, and its weight with and without."""
    trace, link = scene.trained(), scene_link(scene, asking_position(scene))
    call = trace.attention(link.layer).head(link.head)
    scores = call.scores[link.query].double()
    key, width = int(scores.argmax()), call.query.shape[-1]
    return {
        **texts(model=scene.called, layer=link.layer, head=link.head, wide=width),
        **quoted(trace.query_tokens().names, word=link.query, other=key),
        **signs(2, raw=scores[key], divisor=math.sqrt(width), entry=call.scaled[link.query, key]),
        **weight_texts(weight=call.weights[link.query, key], unscaled=scores.softmax(dim=-1)[key]),
    }


_CONTROL_SCALING = Control("Query/key width", lambda scene: {str(one): str(one) for one in _WIDTHS}, lambda scene: "64")

LESSONS = {
    "scaling": Lesson(
        "Scaling",
        7,
        _ask_scaling,
        _show_scaling,
        _CONTROL_SCALING,
        "scaled",
        deeper=("steps",),
        idea=(
            "A score is a sum of products, one for each number of query and key. Some products are above zero and some "
            "below, so they partly cancel. The spread of scores says how far from their mean they usually are (the "
            "standard deviation)."
        ),
    ),
}
