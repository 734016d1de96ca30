"""Attention in plain numpy, from a trace's queries, keys and values alone; and numbers as the course writes them."""

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace

Array = Any


def array(tensor: Any) -> Array:
    return tensor.detach().double().cpu().numpy()


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def scores(trace: Trace, layer: int, head: int) -> Array:
    """Every query with every key; heads may share their keys."""
    call = trace.attention(layer)
    query, key = array(call.query), array(call.key)
    return query[head] @ key[head * len(key) // len(query)].T


def weights(trace: Trace, layer: int, head: int, *, causal: bool = False) -> Array:
    found = scores(trace, layer, head) / math.sqrt(trace.attention(layer).query.shape[-1])
    if causal:
        found[np.triu_indices(len(found), 1)] = -math.inf
    return softmax(found)


def values(trace: Trace, layer: int, head: int) -> Array:
    call = trace.attention(layer)
    value = array(call.value)
    return value[head * len(value) // len(call.query)]


def words(trace: Trace) -> list[int]:
    """The places of words between the marks at both ends."""
    tokens = trace.query_tokens()
    return [at for at in range(len(tokens)) if not tokens.special[at] and tokens.texts[at].isalpha()]


def asked(scene: Scene, run: RunText) -> tuple[Trace, int]:
    """The real model's run, and the place of the word that asks: the pressed one, or the first of four letters."""
    trace = run("all-MiniLM-L6-v2", scene.text)
    places, spelled = words(trace), trace.query_tokens().texts
    if scene.word is not None:
        return trace, places[scene.word]
    pronouns = [at for at in places[2:] if spelled[at] in ("it", "he", "she", "they")]
    return trace, (pronouns or [at for at in places if len(spelled[at]) >= 4])[0]


def chosen_head(trace: Trace, query: int) -> tuple[int, int]:
    """The layer and head with the largest weight on a word beyond the neighbours, of those without a fixed place."""
    places, found = words(trace), dict[tuple[int, int], float]()
    count = trace.query_tokens().special.index(True, 1)
    rows = range(1, count)
    for layer in range(trace.layer_count()):
        for head in range(trace.head_count(layer)):
            matrix = weights(trace, layer, head)
            fixed = [[matrix[at, at + step] for at in rows] for step in (-1, 0, 1)] + [[matrix[at, 0] for at in rows]]
            if all(sum(one) / len(one) <= 0.5 for one in fixed):
                found[layer, head] = max(matrix[query, at] for at in places if abs(at - query) > 1)
    return max(found, key=found.__getitem__)


def far_key(matrix: Array, trace: Trace, query: int) -> int:
    """The word beyond the neighbours with the largest weight."""
    return max((at for at in words(trace) if abs(at - query) > 1), key=lambda at: matrix[query, at])


def number(value: float, digits: int = 2) -> str:
    """A number with so many decimals and a true minus."""
    text = f"{value:.{digits}f}"
    return (text[1:] if float(text) == 0 and text[0] == "-" else text).replace("-", "−")


def share(value: float) -> str:
    """A weight with two decimals, the half up; tiny ones aren't written as 0."""
    if 0 < abs(value) < 0.005:
        return "<0.01" if value > 0 else ">−0.01"
    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)) if value else "0"


def total(numbers: Iterable[float]) -> float:
    """Add up in order, one by one."""
    result = 0.0
    for one in numbers:
        result += one
    return result


def numbered(names: list[str]) -> list[str]:
    """Words as the course calls them: of several equal ones each with its number."""
    below = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    alike = [name.casefold() for name in names]
    return [
        f"{name}{alike[: at + 1].count(alike[at])}".translate(below) if alike.count(alike[at]) > 1 else name
        for at, name in enumerate(names)
    ]


def percent(value: float) -> str:
    """A share in percent, with a decimal below ten."""
    text = f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"
    return f"{text} %"
