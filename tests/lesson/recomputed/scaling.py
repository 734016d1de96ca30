"""Scaling: scores of random matrices multiplied out in numpy, and a real head's score on its way to the softmax."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.splitting import split_words
from tests.lesson.recomputed import by_hand

WIDTHS, SETS = (4, 16, 64), 10


def _scores(scene: Scene, d_k: int) -> list[by_hand.Array]:
    found = []
    for seed in range(SETS * scene.seed, SETS * scene.seed + SETS):
        x = by_hand.array(word_vectors(split_words(scene.text), d_k, seed))
        known = Scratch(d_k, 1, seed, "none").projections()
        w_q, w_k = (by_hand.array(known[name].weight)[:, :d_k] for name in ("query", "key"))
        found.append((x @ w_q) @ (x @ w_k).T)
    return found


def _largest_and_slope(scores: list[by_hand.Array], divisor: float) -> tuple[float, float]:
    """The mean largest weight of a row, and the mean size of the softmax's derivative."""
    rows = [row for one in scores for row in by_hand.softmax(one / divisor)]
    slopes = [np.sqrt(((np.diag(row) - np.outer(row, row)) ** 2).sum()) for row in rows]
    return float(np.mean([row.max() for row in rows])), float(np.mean(slopes))


def _spread(scores: list[by_hand.Array]) -> float:
    every = np.concatenate([one.ravel() for one in scores])
    return math.sqrt(((every - every.mean()) ** 2).mean())


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    d_k = int(scene.choice or 64)
    single = _scores(scene, d_k)
    bare, scaled = _largest_and_slope(single, 1), _largest_and_slope(single, math.sqrt(d_k))
    trace, query = by_hand.asked(scene, run)
    layer, head = by_hand.chosen_head(trace, query)
    row = by_hand.scores(trace, layer, head)[query]
    wide, key = trace.attention(layer).query.shape[-1], int(row.argmax())
    return {
        "d_k": str(d_k),
        "runs": str(SETS),
        "root": f"{d_k**0.5:g}",
        "spread": by_hand.number(_spread(single)),
        "scaled_spread": by_hand.number(_spread([one / math.sqrt(d_k) for one in single])),
        "bare": by_hand.share(bare[0]),
        "scaled": by_hand.share(scaled[0]),
        "bare_gradient": by_hand.number(bare[1], 3),
        "scaled_gradient": by_hand.number(scaled[1], 3),
        "layer": str(layer),
        "head": str(head),
        "wide": str(wide),
        "raw": by_hand.number(row[key]),
        "divisor": by_hand.number(wide**0.5),
        "entry": by_hand.number(row[key] / wide**0.5),
        "weight": by_hand.share(by_hand.softmax(row / wide**0.5)[key]),
        "unscaled": by_hand.share(by_hand.softmax(row)[key]),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Which of 4, 8, 16 and 64 the spread at 64 is nearest to."""
    spread = _spread(_scores(scene, 64))
    order = sorted((4, 8, 16, 64), key=lambda size: abs(size - spread))
    return [float(size == order[0]) for size in (4, 8, 16, 64)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    spreads = {by_hand.number(_spread(_scores(scene, width))) for width in WIDTHS}
    return {*spreads, "4", "8", "16", "64"}
