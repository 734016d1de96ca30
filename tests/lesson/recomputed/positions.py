"""Positions: our module worked out in numpy over the words and over the same words backwards."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.scratch.model import Scratch
from attention_viz.trace.splitting import split_words
from tests.lesson.recomputed import by_hand


def _waves(count: int, width: int) -> by_hand.Array:
    rows = [[place / 10_000 ** (2 * (at // 2) / width) for at in range(width)] for place in range(count)]
    return np.array([[math.cos(one) if at % 2 else math.sin(one) for at, one in enumerate(row)] for row in rows])


def _output(scene: Scene, words: list[str]) -> by_hand.Array:
    scratch = Scratch(8, 2, scene.seed, "none")
    x = by_hand.array(scratch.embed(words)) + (_waves(len(words), 8) if scene.choice == "sinusoidal" else 0)
    w = {name: by_hand.array(one.weight) for name, one in scratch.projections().items()}
    mixed = []
    for own in (slice(0, 4), slice(4, 8)):
        query, key, value = (x @ w[name][:, own] for name in ("query", "key", "value"))
        scores = query @ key.T / 2
        if scene.choice == "causal":
            scores[np.triu_indices(len(words), 1)] = -math.inf
        mixed.append(by_hand.softmax(scores) @ value)
    return np.concatenate(mixed, axis=1) @ w["output"]


def _both(scene: Scene, run: RunText) -> tuple[by_hand.Array, by_hand.Array, list[str], int]:
    """Each word's output, and that of the same word backwards; the words; and the place that is asked about."""
    words = list(split_words(scene.text))
    if scene.choice == "trained":
        trace, query = by_hand.asked(scene, run)
        turned = run("all-MiniLM-L6-v2", " ".join(words[::-1]))
        # The marks at both ends have no word.
        old, new = (by_hand.array(one.output)[1:-1] for one in (trace, turned))
        return old, new[::-1], by_hand.numbered([word.lower() for word in words]), query - 1
    at = next(place for place, word in enumerate(words) if len(word) >= 4)
    return _output(scene, words), _output(scene, words[::-1])[::-1], by_hand.numbered(words), at


def _far(old: by_hand.Array, new: by_hand.Array) -> list[float]:
    return [
        math.dist(one, other) / math.sqrt(sum(number**2 for number in one)) for one, other in zip(old, new, strict=True)
    ]


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    old, new, words, _ = _both(scene, run)
    moved = _far(old, new)
    most = max(moved)
    if most < 1e-4:
        return {"moved": ""}
    return {"moved": f"{words[moved.index(most)]}: {by_hand.percent(most)}"}


def values(scene: Scene, run: RunText) -> list[float]:
    old, new, _, at = _both(scene, run)
    changed = math.dist(old[at], new[at]) > 1e-4
    return [float(not changed), float(changed), 0.0]


def numbers(scene: Scene, run: RunText) -> set[str]:
    old, new, _, at = _both(scene, run)
    return {by_hand.percent(_far(old, new)[at])}
