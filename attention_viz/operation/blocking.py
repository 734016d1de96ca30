"""Effects of the numbers that people write for "blocked".

−∞: Vaswani et al. 2017, section 3.2.3; −10,000: BERT's first code (Devlin et al. 2019, `modeling.py`); −1e9: tutorials.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import ShapeError

BLOCKED_VALUES = (-math.inf, -1e9, -1e4)
PRECISIONS = (torch.float32, torch.float16)


@dataclass(frozen=True, eq=False)
class Blocked:
    """A row of scores, blocked by addition, after torch's softmax.

    Attributes:
        rounded: the value in this precision; float16 has only −∞ below −65,504.
        leak: the largest blocked weight; NaN if the row is.
        outcome: "exact" (0), "leak", "uniform", "ignored" (within 0.001 of unmasked), or "not a number".
    """

    value: float
    dtype: torch.dtype
    rounded: float
    weights: Float[Tensor, " key"]
    leak: float
    outcome: str


def block_row(
    logits: Float[Tensor, " key"],
    allowed: Bool[Tensor, " _key"],
    *,
    values: Sequence[float] = BLOCKED_VALUES,
    precisions: Sequence[torch.dtype] = PRECISIONS,
) -> tuple[Blocked, ...]:
    """Block a row by adding each value in each precision; measure leaks."""
    if logits.shape != allowed.shape or not logits.numel():
        raise ShapeError(f"logits and allowed must have one length, 1 or more; got {len(logits)} and {len(allowed)}")
    return tuple(_block(logits, allowed, value, dtype) for dtype in precisions for value in values)


def _block(logits: Tensor, allowed: Tensor, value: float, dtype: torch.dtype) -> Blocked:
    plain = logits.to(dtype)
    # By way of float64: torch refuses to write a number straight into a precision that can't hold it.
    rounded = torch.tensor(value, dtype=torch.float64).to(dtype)
    weights = torch.where(allowed, plain, plain + rounded).softmax(dim=-1)
    blocked = weights[~allowed]
    leak = float(blocked.max()) if blocked.numel() else 0.0
    return Blocked(value, dtype, float(rounded), weights, leak, _outcome(weights, plain.softmax(dim=-1), leak))


def _outcome(weights: Tensor, unmasked: Tensor, leak: float) -> str:
    if bool(weights.isnan().any()):
        return "not a number"
    if leak == 0:
        return "exact"
    if bool((weights == weights[0]).all()):
        return "uniform"
    return "ignored" if bool((weights - unmasked).abs().max() < 1e-3) else "leak"
