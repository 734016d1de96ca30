"""Attention without parameters: dot products of a real model's vectors, in numpy."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand


def _vectors(scene: Scene, run: RunText) -> tuple[by_hand.Array, list[int], int]:
    trace, query = by_hand.asked(scene, run)
    x = by_hand.array(trace.layer(0).embeddings)
    if scene.choice == "unit":
        x = np.stack([row / np.sqrt((row * row).sum()) for row in x])
    return x, by_hand.words(trace), query


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    x, words, query = _vectors(scene, run)
    products = np.einsum("ik,jk->ij", x, x)
    shares = by_hand.softmax(products)
    mixed = np.einsum("j,jk->k", shares[query], x)
    key = max((at for at in range(len(x)) if at != query), key=lambda at: products[query, at])
    return {
        "wide": str(x.shape[1]),
        "count": str(len(x)),
        "among": str(len(words)),
        "itself": str(sum(shares[at, at] == shares[at].max() for at in words)),
        "own": by_hand.share(shares[query, query]),
        "weight": by_hand.share(shares[query, key]),
        "total": by_hand.share(by_hand.total(shares[query])),
        "learned": by_hand.share(by_hand.total(shares[at, at] for at in words) / len(words)),
        "product": by_hand.number(products[query, key]),
        "square": by_hand.number(np.linalg.norm(x[query]) ** 2),
        "alike": by_hand.number(float(x[query] @ mixed / math.hypot(*x[query]) / math.hypot(*mixed))),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    x, _, query = _vectors(scene, run)
    return list(by_hand.softmax(x @ x[query]))


def numbers(scene: Scene, run: RunText) -> set[str]:
    """The largest share, and the largest cosine with another word."""
    x, words, query = _vectors(scene, run)
    cosines = (x @ x[query]) / np.linalg.norm(x, axis=1) / np.linalg.norm(x[query])
    return {by_hand.share(max(values(scene, run))), by_hand.number(max(cosines[at] for at in words if at != query))}
