"""Layers without a softmax, small enough to follow by hand."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.lesson.tasks.drawing import matrix
from attention_viz.operation.token_mixer import TokenMixer

Numbers = Sequence[Sequence[float]]


def running(query: Numbers, key: Numbers, value: Numbers, decay: float = 1.0) -> TokenMixer:
    """Mix by query · key × decay to the power of the distance."""
    return TokenMixer("lightning", matrix(query), matrix(key), matrix(value), decay=_logs(decay, len(key)))


def delta(
    query: Numbers, key: Numbers, value: Numbers, write: Sequence[float], decay: float = 1.0, *, erases: bool = True
) -> TokenMixer:
    """Mix by the delta rule, or by the same rule without its erasing."""
    return TokenMixer(
        "gated delta" if erases else "lightning",
        matrix(query),
        matrix(key),
        matrix(value),
        decay=_logs(decay, len(key)),
        write=matrix([write]).mT,
    )


def states(key: Numbers, value: Numbers, decay: float = 1.0) -> Float[Tensor, "word d_k d_v"]:
    """Return the state after each word: the decayed one before, plus the word's key × value."""
    state, found = torch.zeros(len(key[0]), len(value[0]), dtype=torch.float64), list[Tensor]()
    for one, other in zip(matrix(key), matrix(value), strict=True):
        state = decay * state + torch.outer(one, other)
        found.append(state)
    return torch.stack(found)


def crowded(keys: int) -> float:
    """Return how much of another value a key brings if keys of two numbers are spread evenly around a circle."""
    turns = [2 * math.pi * at / keys for at in range(keys)]
    around = [(math.cos(turn), math.sin(turn)) for turn in turns]
    return float(running(around, around, torch.eye(keys).tolist()).weights[-1, 0])


def _logs(decay: float, count: int) -> Tensor:
    return torch.full((count, 1), math.log(decay), dtype=torch.float64)
