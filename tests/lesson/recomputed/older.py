"""Older attention: the four scores as their papers write them, pair by pair."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.splitting import split_words
from tests.lesson.recomputed import by_hand

WIDTH, LONGER = 8, 10


def _scores(scene: Scene, kind: str, longer: int = 1) -> by_hand.Array:
    """The scores of the first word of four letters for each word."""
    scratch, words = Scratch(WIDTH, 1, scene.seed, "none"), split_words(scene.text)
    x, known = by_hand.array(scratch.embed(words)) * longer, scratch.projections()
    w, u = (by_hand.array(known[name].weight) for name in ("query", "key"))
    v = by_hand.array(word_vectors(("v",), WIDTH, scene.seed)[0])
    s = x[next(at for at, word in enumerate(words) if len(word) >= 4)]
    ways = {
        "additive": lambda h: v @ np.tanh(w @ s + u @ h),
        "dot": lambda h: s @ h,
        "general": lambda h: s @ w @ h,
        "scaled": lambda h: s @ h / math.sqrt(WIDTH),
    }
    return np.array([ways[kind](h) for h in x])


def _kind(scene: Scene) -> str:
    return scene.choice or "additive"


def _row(scene: Scene, kind: str) -> by_hand.Array:
    return by_hand.softmax(_scores(scene, kind))


def _grown(scene: Scene) -> float:
    return abs(_scores(scene, _kind(scene), LONGER)).max() / abs(_scores(scene, _kind(scene))).max()


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    row = _row(scene, _kind(scene))
    beside = _row(scene, "scaled" if _kind(scene) == "dot" else "dot")[row.argmax()]
    return {
        "d": str(WIDTH),
        "one": str(round(np.tanh(50.0))),
        "weight": by_hand.share(float(row.max())),
        "beside": by_hand.share(float(beside)),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Less than ten times, ten times, a hundred times: a product of two vectors grows with both."""
    return [float(_grown(scene) < LONGER - 1e-6), 0.0, float(abs(_grown(scene) - LONGER**2) < 1e-3)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {str(LONGER), f"{_grown(scene):,.3g}", "-1", "1"}
