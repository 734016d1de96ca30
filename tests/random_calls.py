"""Random numbers to give to an attention call, on axes that all differ in size, so that a swapped axis cannot pass."""

import torch
from torch import Tensor

HEADS, QUERIES, KEYS, D_K, D_V = 3, 5, 7, 11, 13


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def inputs(*lead: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value whose axes all differ."""
    return (
        random(*lead, QUERIES, D_K, seed=seed, dtype=dtype),
        random(*lead, KEYS, D_K, seed=seed + 1, dtype=dtype),
        random(*lead, KEYS, D_V, seed=seed + 2, dtype=dtype),
    )


def some_allowed(*shape: int, seed: int = 9) -> Tensor:
    """A random mask whose row 2 may look nowhere."""
    allowed = random(*shape, seed=seed) > -0.3
    allowed[..., 2, :] = False
    return allowed
