"""Count the bytes that a model's numbers take as they are stored."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

__all__ = ["bytes_in_memory"]

# What bitsandbytes keeps beside a quantized matrix.
_BESIDE = ("SCB", "quant_state")


def bytes_in_memory(model: nn.Module) -> int:
    """Return the bytes of parameters and buffers in memory: packed if quantized, and none if offloaded to a disk."""
    stored = (one for tensor in (*model.parameters(), *model.buffers()) for one in _stored(tensor))
    return sum({id(one): one.numel() * one.element_size() for one in stored}.values())


def _stored(tensor: Tensor) -> Iterator[Tensor]:
    """Yield the plain tensors that a tensor consists of."""
    if hasattr(tensor, "__tensor_flatten__"):
        inside: Any = tensor
        for name in inside.__tensor_flatten__()[0]:
            yield from _stored(getattr(tensor, name))
        return
    if not tensor.is_meta:
        yield tensor
    for name in _BESIDE:
        beside: Any = getattr(tensor, name, None)
        found = (beside, getattr(beside, "absmax", None), getattr(beside, "code", None))
        yield from (one for one in found if isinstance(one, Tensor))
