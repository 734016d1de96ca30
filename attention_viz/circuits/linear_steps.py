"""Steps that are linear once their statistics are fixed; biases are leaves."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["STEPS", "Leaves", "clipped", "scaled"]

# Makes a tensor a leaf of a kind, and hands back what to go on with.
Leaves = Callable[[Tensor, str], Tensor]


def _linear(
    leaf: Leaves, func: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    found = func(input, weight)
    return found if bias is None else found + leaf(bias, "bias")


def _addmm(
    leaf: Leaves, _func: Callable[..., Tensor], input: Tensor, mat1: Tensor, mat2: Tensor, **scales: Any
) -> Tensor:
    if scales:
        return leaf(input, "bias") * scales.get("beta", 1) + (mat1 @ mat2) * scales.get("alpha", 1)
    return leaf(input, "bias") + mat1 @ mat2


def _conv1d(
    leaf: Leaves,
    func: Callable[..., Tensor],
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *rest: Any,
    **named: Any,
) -> Tensor:
    found = func(input, weight, None, *rest, **named)
    return found if bias is None else found + leaf(bias, "bias")[:, None]


def _layer_norm(
    leaf: Leaves,
    _func: Callable[..., Tensor],
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    **_rest: Any,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(axes, keepdim=True)
    # The variance of the whole, as the model computes it.
    found = centred * (centred.detach().square().mean(axes, keepdim=True) + eps).rsqrt()
    found = found if weight is None else found * weight
    return found if bias is None else found + leaf(bias, "bias")


def _rms_norm(
    _leaf: Leaves,
    _func: Callable[..., Tensor],
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    **_rest: Any,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    small = torch.finfo(input.dtype).eps if eps is None else eps
    found = input * (input.detach().square().mean(axes, keepdim=True) + small).rsqrt()
    return found if weight is None else found * weight


STEPS: dict[str, Callable[..., Tensor]] = {
    "linear": _linear,
    "addmm": _addmm,
    "conv1d": _conv1d,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
}


def scaled(before: Tensor, after: Tensor) -> Tensor:
    """Write an activation as input times fixed number."""
    if after.shape != before.shape:
        return after
    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        held = before.detach()
        return before * torch.where(held == 0, torch.zeros_like(held), after / held)


def clipped(before: Tensor, in_place: bool, *bounds: Any, **named: Any) -> Tensor:
    """Write a clip as input times fixed number, 1 between bounds."""
    with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
        after = torch.clamp(before, *bounds, **named)
        ratio = torch.where(before == 0, torch.zeros_like(before), after / before)
    return before.mul_(ratio) if in_place else before * ratio
