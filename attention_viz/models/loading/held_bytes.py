"""Count the bytes that a model's numbers take per device, before it has any."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.models.loading.quantizing import described, method_of
from attention_viz.sources.load_options import DISK

# bitsandbytes keeps a scale in float32 per 64 numbers, and a table of the 16 values of 4 bits.
_GROUP, _SCALE, _TABLE = 64, 4, 64


@dataclass(frozen=True)
class Passing:
    """Bytes that exist only while a module runs: weights from elsewhere, or unpacked ones.

    Attributes:
        first: bytes before it has its output.
        then: bytes until it ends.
        per_token: bytes per token, added to `first`.
    """

    first: int = 0
    then: int = 0
    per_token: int = 0


@dataclass(frozen=True)
class HeldBytes:
    """A model's bytes by the names of devices.

    Attributes:
        weights: bytes in all.
        by_device: bytes per device, "disk" among them.
        passing: by path, what modules take on the device that computes while they run.
        computes: the device that computes.
    """

    weights: int
    by_device: Mapping[str, int]
    passing: Mapping[str, Passing]
    computes: str

    @property
    def here(self) -> int:
        """Bytes that stay on the device that computes."""
        return self.by_device.get(self.computes, 0)

    @property
    def most(self) -> int:
        """Bytes of weights on the device that computes at one time."""
        return self.here + max((one.first for one in self.passing.values()), default=0)


def held_bytes(
    model: nn.Module,
    dtype: torch.dtype,
    quantizer: Any,
    parts: Mapping[str, int | str] | None,
    device: torch.device,
    stored: torch.dtype,
) -> HeldBytes:
    """Count a model on the meta device.

    Args:
        parts: accelerate's device map; None for the whole on `device`.
        stored: the dtype in the file.
    """
    quantized = quantized_names(model, quantizer)
    found, passing, weights, seen = dict[str, int](), dict[str, Passing](), 0, set[int]()
    home = _named(parts, device)
    # On a CPU, parts on a disk are mapped, unless they get another dtype.
    comes = {"cpu", DISK} - {str(device)} - ({DISK} if device.type == "cpu" and dtype == stored else set())
    # Buffers keep their dtype, and aren't offloaded.
    buffers = {id(one) for one in model.buffers()}
    for path, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers()):
        if path in quantized:
            size = _quantized_size(tensor, quantizer, dtype)
        else:
            kept = id(tensor) in buffers or not tensor.is_floating_point()
            size = tensor.numel() * (tensor.element_size() if kept else dtype.itemsize)
        where, module = str(device) if id(tensor) in buffers else home(path), path.rpartition(".")[0]
        if where in comes:
            size_here = passing.get(module, Passing()).first + size
            passing[module] = Passing(size_here, size_here)
        elif path in quantized:
            passing[module] = _unpacked(tensor, quantizer, dtype, device)
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[where] = found.get(where, 0) + size
            weights += size
    return HeldBytes(weights, found, passing, str(device))


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


def _unpacked(weight: Tensor, quantizer: Any, dtype: torch.dtype, device: torch.device) -> Passing:
    """Return what a quantized matrix takes while it is multiplied; measured with torchao 0.18, bitsandbytes 0.50."""
    numbers, rows = weight.numel() * dtype.itemsize, weight.shape[0]
    if method_of(quantizer) == "bitsandbytes":
        if getattr(quantizer, "load_in_4bit", False):  # a CPU's kernel unpacks as it goes
            return Passing() if device.type == "cpu" else Passing(numbers, numbers)
        # Four matrices of sums, in 32 bits.
        return Passing(per_token=0 if dtype is torch.float32 else 4 * 4 * rows)
    # The numbers in its dtype, and of 4 bits also less their zero point.
    return Passing(2 * numbers if described(quantizer).startswith("int4") else numbers, numbers)


def _named(parts: Mapping[str, int | str] | None, device: torch.device) -> Callable[[str], str]:
    """Return a function from a tensor's path to its device's name."""

    def home(path: str) -> str:
        if parts is None:
            return str(device)
        best = max((one for one in parts if one in ("", path) or path.startswith(f"{one}.")), key=len, default=None)
        where = str(device) if best is None else parts[best]
        return f"cuda:{where}" if isinstance(where, int) else where

    return home
