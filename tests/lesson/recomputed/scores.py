"""Scores: every product by itself, and the angle from the three sides of a triangle."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText

MODEL = "all-MiniLM-L6-v2"
# The head in which “bank”, the third token, looks most at a word further off: found by `why`, and checked there.
LAYER, HEAD, BANK = 0, 4, 2


def pair(scene: Scene, run: RunText) -> tuple[np.ndarray, np.ndarray, int]:
    call = run(MODEL, scene.text).attention(LAYER)
    at = int(scene.choice) if scene.choice else BANK
    return (*(tensor[HEAD].detach().double().numpy() for tensor in (call.query, call.key)), at)


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _angle(one: np.ndarray, other: np.ndarray) -> float:
    """By the law of cosines."""
    a, b, c = (math.sqrt(float((side**2).sum())) for side in (one, other, one - other))
    return math.degrees(math.acos((a * a + b * b - c * c) / (2 * a * b)))


def _angle_of_half() -> int:
    """The whole degree at which a unit vector's part along another is nearest to a half, from the circle itself."""
    return min(range(91), key=lambda at: abs(1 - math.sin(math.radians(at)) ** 2 - 0.25))


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    query, key, at = pair(scene, run)
    row = values(scene, run)
    best = row.index(max(row))
    products = [(float(a), float(b)) for a, b in zip(query[at], key[best], strict=True)]
    products.sort(key=lambda pair: -abs(pair[0] * pair[1]))
    terms = [" · ".join(_number(one) for one in pair) for pair in products[:4]]
    rest = _number(sum(a * b for a, b in products[4:]))
    return {
        "layer": str(LAYER),
        "head": str(HEAD),
        "d_k": str(query.shape[1]),
        "angle": f"{_angle(query[at], key[best]):.1f}",
        "score": _number(max(row)),
        "lowest": _number(min(row)),
        "length": _number(math.sqrt(sum(float(one) ** 2 for one in query[at]))),
        "other_length": _number(math.sqrt(sum(float(one) ** 2 for one in key[best]))),
        "sum": " + ".join([*terms, f"{rest} from {len(products) - 4} more"]),
        "tokens": str(len(row)),
        "cells": str(len(row) ** 2),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    query, key, at = pair(scene, run)
    return [sum(float(a) * float(b) for a, b in zip(query[at], one, strict=True)) for one in key]


def numbers(scene: Scene, run: RunText) -> set[str]:
    query, key, at = pair(scene, run)
    row = values(scene, run)
    best = row.index(max(row))
    most = float(np.linalg.norm(query[at]) * np.linalg.norm(key[best]))
    return {_number(most), str(_angle_of_half())}
