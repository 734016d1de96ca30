"""Rotary positions: paired dimensions and angles.

Source: Su et al. 2021, "RoFormer", eq. 34.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Rotation", "rotation"]


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
    """Find the rotation between positions' vectors; None without one.

    Pairs are neighbours or halves; some models rotate only some dimensions.
    """
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
