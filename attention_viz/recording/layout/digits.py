"""Reduces positions' queries, keys and values to a few numbers, and finds the digit that each position shows."""

from collections.abc import Sequence
from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor

# Numbers nearer than this share of the largest don't move a position.
_STILL = 1e-5


def mixed(terms: Float[Tensor, "row head position width"], count: int = 2) -> Float[Tensor, "row*position number"]:
    """Return a few numbers per position, which any of its own change."""
    heads, width = terms.shape[1], terms.shape[3]
    chance = torch.Generator().manual_seed(heads * width)
    mixing = torch.randn(heads, width, count, generator=chance)
    terms = terms.detach() if terms.dtype == torch.float64 else terms.detach().float()
    return (terms @ mixing.to(terms)).sum(dim=1).reshape(-1, count)


def digits_shown(
    known: Sequence[Float[Tensor, "position number"]],
    shown: Float[Tensor, "position number"],
    close: float = 1e-3,
    rounding: float = 0.0,
) -> tuple[Int[Tensor, " position"], bool]:
    """Return the nearest digit to each position, −1 if none moves it, and whether each shows one digit alone.

    Args:
        known: each digit's numbers.
        close: how far a position may be from its digit, as a share of the distance between two.
        rounding: how far the numbers themselves may be off.
    """
    if any(one.shape != shown.shape for one in known):
        return torch.full((len(shown),), -1, device=shown.device), False
    every = torch.stack([*known])
    least = max(_STILL * float(every.abs().max().clamp_min(1e-30)), 4 * rounding)
    between = torch.stack([(one - other).norm(dim=-1) for one, other in combinations(every, 2)])
    still = between.amax(dim=0) <= least
    # Two digits may be the same at some position.
    nearest = between.masked_fill(between <= least, float("inf")).amin(dim=0)
    off, digits = (every - shown).norm(dim=-1).min(dim=0)
    clean = off <= torch.where(still, least, close * nearest + rounding)
    return torch.where(still, -1, digits), bool(clean.all())
