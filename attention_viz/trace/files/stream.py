"""Write tensors as safetensors piece by piece, so that no second copy of them is ever in memory."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# Bytes of a tensor that are written at a time.
AT_ONCE = 32_000_000
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
# The header's length is a multiple of this, as the format recommends.
_ALIGNED = 8


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor to write.

    Attributes:
        dtype: its dtype in the file.
        convert: makes a piece's numbers those of the file.
    """

    tensor: Tensor
    dtype: torch.dtype
    convert: Callable[[Tensor], Tensor]

    @property
    def bytes(self) -> int:
        """Its bytes in the file."""
        return self.tensor.numel() * self.dtype.itemsize

    def pieces(self) -> Iterator[Any]:
        """Yield its bytes."""
        for piece in self._parts():
            stored = self.convert(piece).cpu().contiguous()
            yield stored.reshape(-1).view(torch.uint8).numpy().data

    def _parts(self) -> Iterator[Tensor]:
        tensor = self.tensor
        if not tensor.ndim or not tensor.numel():
            yield from [tensor] if tensor.numel() else []
            return
        rows = max(1, AT_ONCE // max(1, math.prod(tensor.shape[1:]) * self.dtype.itemsize))
        for start in range(0, len(tensor), rows):
            yield tensor[start : start + rows]


def header_of(tensors: Mapping[str, StoredTensor], metadata: Mapping[str, str]) -> bytes:
    """Return the file's beginning: its length, and each tensor's place."""
    entries: dict[str, object] = {"__metadata__": dict(metadata)}
    at = 0
    for name, one in in_order(tensors):
        end = at + one.bytes
        entries[name] = {"dtype": _NAMES[one.dtype], "shape": list(one.tensor.shape), "data_offsets": [at, end]}
        at = end
    written = json.dumps(entries, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _ALIGNED)
    return len(written).to_bytes(8, "little") + written


def bytes_of_all(tensors: Mapping[str, StoredTensor]) -> Iterator[Any]:
    """Yield the bytes behind the header."""
    for _, one in in_order(tensors):
        yield from one.pieces()


def in_order(tensors: Mapping[str, StoredTensor]) -> list[tuple[str, StoredTensor]]:
    """List tensors in the file's order: wide numbers first, so that all are aligned."""
    return sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
