"""Comparing two results: one rule, and its tolerances by name."""

import torch
from torch import Tensor

# How far two results may lie apart, relative to the largest number. The same sum in the same precision:
EXACT = 1e-5
# The same run in a batch of another size, or begun in its middle, which adds in another order:
REORDERED = 1e-4
# A run made again, perhaps with other threads or on another machine:
REPEATED = 1e-3


def distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference relative to the largest finite number in `other`; equal infinities count as 0."""
    if not one.numel():
        return 0.0
    one = one.to(other.device)
    gap = torch.where(one == other, torch.zeros_like(one - other), (one - other).abs()).max()
    finite = other[other.isfinite()].abs()
    size = finite.max() if finite.numel() else torch.ones((), device=other.device)
    return float(gap) / max(float(size), 1e-30)


def close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Return whether two results have the same shape and are the same up to a tolerance; NaN is close to nothing."""
    return one.shape == other.shape and distance(one, other) <= tolerance
