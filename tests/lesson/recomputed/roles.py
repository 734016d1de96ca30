"""Queries, keys and values: a real head's scores both ways."""

import itertools
import math

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace
from tests.lesson.recomputed import by_hand


def _both(scene: Scene, run: RunText) -> tuple[float, float]:
    trace, query = by_hand.asked(scene, run)
    layer, head = _head(scene, run)
    key = by_hand.far_key(by_hand.weights(trace, layer, head), trace, query)
    scores = by_hand.scores(trace, layer, head)
    return scores[query, key], scores[key, query]


def _head(scene: Scene, run: RunText) -> tuple[int, int]:
    trace, opening = by_hand.asked(Scene(scene.text, run), run)
    return by_hand.chosen_head(trace, opening)


def _contrast(trace: Trace, layer: int, head: int) -> str:
    """Of the pairs of words with keys at most 60° apart, the one whose values are furthest apart by comparison."""
    key = by_hand.array(trace.attention(layer).key)[head]
    value, names = by_hand.values(trace, layer, head), by_hand.numbered(list(trace.query_tokens().texts))
    pairs = list[tuple[float, float, int, int]]()
    for one, other in itertools.combinations(by_hand.words(trace), 2):
        keys, values = (
            float(vectors[one] @ vectors[other] / math.hypot(*vectors[one]) / math.hypot(*vectors[other]))
            for vectors in (key, value)
        )
        if keys >= 0.5:
            pairs.append((keys, values, one, other))
    keys, values, one, other = max(pairs, key=lambda pair: pair[0] - pair[1])
    return f"{names[one]} and {names[other]}: {by_hand.number(keys)}, {by_hand.number(values)}"


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace, _ = by_hand.asked(scene, run)
    layer, head = _head(scene, run)
    matrix, x = by_hand.weights(trace, layer, head), by_hand.array(trace.layer(0).embeddings)
    places, plain = by_hand.words(trace), by_hand.softmax(x @ x.T)
    forth, back = _both(scene, run)
    return {
        "layer": str(layer),
        "head": str(head),
        "contrast": _contrast(trace, layer, head),
        "d_model": "8",
        "d_k": "4",
        "width": {"value": "3", "wide": "6"}.get(scene.choice, "4"),
        "forth": by_hand.number(forth),
        "back": by_hand.number(back),
        "plain": by_hand.share(sum(plain[at, at] for at in places) / len(places)),
        "own": by_hand.share(sum(matrix[at, at] for at in places) / len(places)),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Of “the same”, “another number” and “the opposite”, what holds."""
    forth, back = _both(scene, run)
    return [float(round(forth, 2) == round(back, 2)), float(round(abs(forth - back), 2) > 0), 0.0]


def numbers(scene: Scene, run: RunText) -> set[str]:
    forth, back = _both(scene, run)
    return {by_hand.number(one) for one in (forth, back, -forth)}
