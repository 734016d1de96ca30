"""Count the bytes that a model's numbers take per device, before it has any."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.models.loading.quantizing import method_of
from attention_viz.sources.load_options import DISK

# bitsandbytes keeps a scale in float32 per 64 numbers, and a table of the 16 values of 4 bits.
_GROUP, _SCALE, _TABLE = 64, 4, 64


@dataclass(frozen=True)
class HeldBytes:
    """A model's bytes by the names of devices.

    Attributes:
        weights: bytes in all.
        by_device: bytes per device, "disk" among them.
        moved: bytes of the largest matrix of a layer that comes from elsewhere when it runs; 0 if none does.
        moved_table: the same of embeddings and unembeddings, which run before and after all layers.
        computes: the device that computes.
    """

    weights: int
    by_device: Mapping[str, int]
    moved: int
    moved_table: int
    computes: str

    def peak(self, run: int = 0) -> int:
        """Return the bytes at one time on the device that computes; `run` is a run's, beside the weights."""
        return self.by_device.get(self.computes, 0) + max(self.moved, self.moved_table) + run


def held_bytes(
    model: nn.Module,
    dtype: torch.dtype,
    quantizer: Any,
    parts: Mapping[str, int | str] | None,
    device: torch.device,
) -> HeldBytes:
    """Count a model on the meta device.

    Args:
        parts: accelerate's device map; None for the whole on `device`.
    """
    quantized = quantized_names(model, quantizer)
    found, moved, weights, seen = dict[str, int](), {True: 0, False: 0}, 0, set[int]()
    tables = _tables(model)
    home = _named(parts, device)
    # Buffers keep their dtype, and aren't offloaded.
    buffers = {id(one) for one in model.buffers()}
    for path, tensor in (*model.named_parameters(), *model.named_buffers()):
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if path in quantized:
            size = _quantized_size(tensor, quantizer, dtype)
        else:
            kept = id(tensor) in buffers or not tensor.is_floating_point()
            size = tensor.numel() * (tensor.element_size() if kept else dtype.itemsize)
        where = str(device) if id(tensor) in buffers else home(path)
        found[where] = found.get(where, 0) + size
        weights += size
        if where != str(device) and where in (DISK, "cpu"):
            moved[id(tensor) in tables] = max(moved[id(tensor) in tables], size)
    return HeldBytes(weights, found, moved[False], moved[True], str(device))


def _tables(model: nn.Module) -> set[int]:
    """Return the embeddings' and unembeddings' parameters by identity."""
    known = cast(Any, model)
    output = known.get_output_embeddings() if hasattr(known, "get_output_embeddings") else None
    modules = [one for one in model.modules() if isinstance(one, nn.Embedding) or one is output]
    return {id(parameter) for module in modules for parameter in module.parameters()}


def quantized_names(model: nn.Module, quantizer: Any) -> set[str]:
    """Return the weights that get quantized: of linear layers, but not the one that makes logits."""
    if quantizer is None:
        return set()
    known = cast(Any, model)
    output = known.get_output_embeddings() if hasattr(known, "get_output_embeddings") else None
    skipped = _skipped(quantizer)
    return {
        f"{path}.weight"
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not output and not any(one in path for one in skipped)
    }


def _skipped(quantizer: Any) -> list[str]:
    names = getattr(quantizer, "llm_int8_skip_modules", None) or getattr(quantizer, "modules_to_not_convert", None)
    return list(names or ())


def _quantized_size(tensor: Tensor, quantizer: Any, dtype: torch.dtype) -> int:
    numbers, rows = tensor.numel(), tensor.shape[0]
    if method_of(quantizer) == "bitsandbytes":
        if getattr(quantizer, "load_in_4bit", False):
            return numbers // 2 + -(-numbers // _GROUP) * _SCALE + _TABLE
        return numbers + rows * _SCALE
    # torchao: a byte per number, also of 4 bits, and per row a scale.
    return numbers + rows * dtype.itemsize


def _named(parts: Mapping[str, int | str] | None, device: torch.device) -> Callable[[str], str]:
    """Return a function from a tensor's path to its device's name."""

    def home(path: str) -> str:
        if parts is None:
            return str(device)
        best = max((one for one in parts if one in ("", path) or path.startswith(f"{one}.")), key=len, default=None)
        where = str(device) if best is None else parts[best]
        return f"cuda:{where}" if isinstance(where, int) else where

    return home
