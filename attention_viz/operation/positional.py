"""Recognise how a call tells positions: by a bias, or by rotation.

Source: RoPE: Su et al. 2021, "RoFormer", eq. 34.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED

ALIBI, RELATIVE = "ALiBi", "relative positions"

# With fewer tokens a table by distance and a slope can't be told apart.
_LEAST = 8


def bias_kind(call: Attention) -> str:
    """Name a call's bias.

    Source: ALiBi, a slope per head: Press et al. 2022, "Train Short, Test Long", section 3; a number per distance:
    Raffel et al. 2020 ("T5"), section 2.1.

    Args:
        call: (head, query, key); blocked cells are ignored.

    Returns:
        "ALiBi" if even by key position; "relative positions" if by distance; else, or for short texts, empty.
    """
    queries, keys = call.shape[-2:]
    if call.bias is None or queries != keys or keys < _LEAST:
        return ""
    bias = call.bias.detach().double().expand(call.shape)
    live = torch.ones(call.shape, dtype=torch.bool) if call.allowed is None else call.allowed.expand(call.shape).cpu()
    bias, most = bias.cpu(), float(bias[live.to(bias.device)].abs().max()) * REORDERED
    if _is_slope(bias, live, most):
        return ALIBI
    return RELATIVE if _is_by_distance(bias, live, most) else ""


def _is_slope(bias: Tensor, live: Tensor, most: float) -> bool:
    """Equal steps between live keys, up to a constant a row, which changes no weight."""
    steps, pairs = bias.diff(dim=-1), live[..., 1:] & live[..., :-1]
    if not bool(pairs.flatten(1).any(dim=-1).all()):
        return False
    counts = pairs.sum(dim=(-2, -1), keepdim=True)
    mean = steps.masked_fill(~pairs, 0).sum(dim=(-2, -1), keepdim=True) / counts
    return bool(((steps - mean).abs()[pairs] <= most).all())


def _is_by_distance(bias: Tensor, live: Tensor, most: float) -> bool:
    count = bias.shape[-1]
    for distance in range(1 - count, count):
        numbers, there = bias.diagonal(distance, -2, -1), live.diagonal(distance, -2, -1)
        high = numbers.masked_fill(~there, -torch.inf).amax(dim=-1)
        low = numbers.masked_fill(~there, torch.inf).amin(dim=-1)
        if bool((high - low > 2 * most).any()):
            return False
    return True


@dataclass(frozen=True, eq=False)
class Rotation:
    """Each position's rotation.

    Attributes:
        pairs: paired dimensions, (first, second).
        angles: radians, −π to π; 0 if both numbers are 0.
    """

    pairs: tuple[tuple[int, int], ...]
    angles: Float[Tensor, "position pair"]


def rotation(before: Float[Tensor, "position d_k"], after: Float[Tensor, "position d_k"]) -> Rotation | None:
    """Find the rotation between positions' vectors, of paired neighbours or halves; None without one."""
    width = before.shape[-1]
    turned = [part for part in (width, width // 2, width // 4) if part >= 2 and part % 2 == 0]
    for part in turned:
        half = part // 2
        for pairs in ([(c, c + half) for c in range(half)], [(2 * c, 2 * c + 1) for c in range(half)]):
            if _turns(before, after, pairs, part):
                return Rotation(tuple(pairs), _angles(before, after, pairs))
    return None


def _turns(before: Tensor, after: Tensor, pairs: list[tuple[int, int]], part: int) -> bool:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    lengths = [rows[:, first].double() ** 2 + rows[:, second].double() ** 2 for rows in (before, after)]
    bound = 1e-3 * float(lengths[0].max())
    return bool((lengths[0] - lengths[1]).abs().max() <= bound) and torch.allclose(before[:, part:], after[:, part:])


def _angles(before: Tensor, after: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    a, b = before[:, first].double(), before[:, second].double()
    turned_a, turned_b = after[:, first].double(), after[:, second].double()
    return torch.atan2(a * turned_b - b * turned_a, a * turned_a + b * turned_b)
