"""Recurrent against parallel: steps by walking them, and what is left by moving the first word a little."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.scratch.model import Scratch
from attention_viz.trace.splitting import split_words
from tests.lesson.recomputed import by_hand

WIDTH, A_LITTLE = 8, 1e-5


def _end(scene: Scene) -> int:
    return int(scene.choice or len(split_words(scene.text)) - 1)


def _states(scene: Scene, nudge: by_hand.Array) -> by_hand.Array:
    scratch = Scratch(WIDTH, 1, scene.seed, "none")
    w, u = (by_hand.array(scratch.projections()[name].weight) for name in ("query", "key"))
    state, found = np.zeros(WIDTH), []
    for at, x in enumerate(by_hand.array(scratch.embed(split_words(scene.text)))):
        state = np.tanh(state @ w + (x + nudge if at == 0 else x) @ u)
        found.append(state)
    return np.array(found)


def _left(scene: Scene) -> float:
    """By differences in each direction: how far the state moves, beside the first one's."""
    moves = np.array(
        [(_states(scene, A_LITTLE * one) - _states(scene, -A_LITTLE * one)) / (2 * A_LITTLE) for one in np.eye(WIDTH)]
    )
    sizes = np.sqrt((moves**2).sum(axis=(0, 2)))
    return float(sizes[_end(scene)] / sizes[0])


def _rounds(scene: Scene) -> int:
    ready, rounds = {-1}, 0
    while _end(scene) not in ready:
        ready, rounds = ready | {at + 1 for at in ready}, rounds + 1
    return rounds


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    scratch, end = Scratch(WIDTH, 1, scene.seed, "none"), _end(scene)
    x = by_hand.array(scratch.embed(split_words(scene.text)))
    w_q, w_k = (by_hand.array(scratch.projections()[name].weight) for name in ("query", "key"))
    row = by_hand.softmax((x[end] @ w_q) @ (x @ w_k).T / math.sqrt(WIDTH))
    return {
        "hops": str(_rounds(scene) - 1),
        "one": "1",
        "left": by_hand.percent(_left(scene)),
        "weight": by_hand.share(float(row[0])),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    rounds = _rounds(scene)
    return [float(one == rounds) for one in sorted({1, (rounds + 1) // 2, rounds, rounds * rounds})]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {str(_rounds(scene)), "1"}
