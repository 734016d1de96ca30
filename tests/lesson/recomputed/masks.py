"""Masks: cells counted one by one, and the row's powers of e over what is left."""

import math

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText

MODEL = "all-MiniLM-L6-v2"
# As in `scores`: “bank” looks at “river” in this head.
LAYER, HEAD, BANK, RIVER = 0, 4, 2, 5


def _open(mask: str, row: int, column: int, words: int) -> bool:
    return (mask not in ("causal", "both") or column <= row) and (mask not in ("padding", "both") or column < words)


def _row(scene: Scene, run: RunText, mask: str) -> tuple[list[float], int]:
    """The query's scores over √d_k, and how many tokens aren't padding."""
    words = len(run(MODEL, scene.text).query_tokens())
    beside = f"{scene.text} the the" if mask in ("padding", "both") else None
    call = run(MODEL, scene.text, beside=beside).attention(LAYER)
    query, key = (tensor[HEAD].detach().double().numpy() for tensor in (call.query, call.key))
    return [float(query[BANK] @ one) / math.sqrt(query.shape[1]) for one in key], words


def _share(value: float) -> str:
    return "0" if not value else "<0.01" if value < 0.005 else f"{value:.2f}"


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    mask = scene.choice or "causal"
    row, words = _row(scene, run, mask)
    size = range(len(row))
    free = [_open(mask, BANK, column, words) for column in size]
    powers = [math.exp(one) for one in row]
    left = sum(power for power, one in zip(powers, free, strict=True) if one)
    shut = free.count(False)
    return {
        "layer": str(LAYER),
        "head": str(HEAD),
        "cells": str(len(row) ** 2),
        "blocked": str(sum(not _open(mask, at, column, words) for at in size for column in size)),
        "before": _share(powers[RIVER] / sum(powers)),
        "after": _share(powers[RIVER] / left if free[RIVER] else 0),
        "sum": _share(sum(power / left for power, one in zip(powers, free, strict=True) if one)),
        "leak": _share(shut / (left + shut)),
        "left": _share(left / sum(powers)),
        "large": "−1,000,000,000",
        "uniform": _share(1 / len(row)),
        "ours": "0",
    }


def values(scene: Scene, run: RunText) -> list[float]:
    mask = scene.choice or "causal"
    row, words = _row(scene, run, mask)
    size = range(len(row))
    return [float(sum(_open(mask, at, column, words) for column in size)) for at in size]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return set()
