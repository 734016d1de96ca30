"""Map long traces' tensors from a file to save memory."""

import contextlib
import ctypes
import math
import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy
import torch
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import map_terms

if TYPE_CHECKING:
    from typing import IO

__all__ = ["RestingFile", "bytes_of", "give_back", "is_resting", "set_aside"]

# What a call has of its own.
_OWN = ("query", "key", "value")
# After so many calls the memory that theirs took is given back: else it stays with the process, in pieces of a size
# that the next layers don't fill.
_EVERY = 4
# Linux's MADV_PAGEOUT, which Python 3.11 has no name for: pages go, and what was written into them is kept.
_PAGEOUT = 21
# Where in memory the mapped tensors begin, as long as they are mapped.
_places: set[int] = set()
# How many bytes are copied at a time where a tensor doesn't lie in one piece.
BYTES_AT_A_TIME = 32_000_000


class RestingFile:
    """A nameless file of tensors, deleted with the last of them.

    It lies in the system's temporary folder (TMPDIR).
    """

    def __init__(self) -> None:
        """Begin with an empty file."""
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="attention_viz-")
        _ = weakref.finalize(self, self._file.close)
        self._taken = 0

    def take(self, call: Attention) -> Attention:
        """Move a call's query, key and value into the file; shared masks stay."""
        self._taken += 1
        if self._taken % _EVERY == 0:
            give_back()
        return map_terms(call, lambda term, value: self.put(value) if term.name in _OWN else value)

    def put(self, tensor: Tensor) -> Tensor:
        """Write a tensor and return it mapped from the file.

        Tensors that need a gradient, are on another device, are empty or find no room stay.
        """
        if tensor.requires_grad or tensor.device.type != "cpu" or not tensor.numel():
            return tensor
        try:
            return self._put(tensor)
        except OSError:
            return tensor

    def collect(self, shape: tuple[int, ...], dtype: torch.dtype, pieces: Callable[[], Iterable[Tensor]]) -> Tensor:
        """Write a tensor piece by piece along its first axis and return it mapped.

        Without room it is made in memory.
        """
        try:
            return self._write(shape, dtype, pieces())
        except OSError:
            return torch.cat(list(pieces()))

    def _put(self, tensor: Tensor) -> Tensor:
        return self._write(tensor.shape, tensor.dtype, _pieces(tensor))

    def _write(self, shape: Sequence[int], dtype: torch.dtype, pieces: Iterable[Tensor]) -> Tensor:
        file = self._file
        start = -(-file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        _ = file.seek(start)
        for piece in pieces:
            _ = file.write(piece.contiguous().view(torch.uint8).numpy().data)
        file.flush()
        length = math.prod(shape) * dtype.itemsize
        # A private mapping: whoever writes into the tensor changes a copy of the page, as in memory of its own.
        mapped = mmap.mmap(file.fileno(), length, offset=start, access=mmap.ACCESS_COPY)
        rested = torch.from_numpy(numpy.frombuffer(mapped, numpy.uint8)).view(dtype).view(*shape)
        place = rested.data_ptr()
        _places.add(place)
        _ = weakref.finalize(mapped, _places.discard, place)
        return rested


def is_resting(tensor: Tensor) -> bool:
    """Return whether a tensor's numbers lie in a mapped file."""
    return tensor.untyped_storage().data_ptr() in _places


def bytes_of(tensors: Iterable[Tensor], *, resting: bool) -> int:
    """Count tensors' bytes, in memory or mapped; shared storage once, views as a whole."""
    storages = [one.untyped_storage() for one in tensors if is_resting(one) == resting]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def set_aside(tensor: Tensor) -> None:
    """Release a mapped tensor's memory; it is read again on use."""
    base = tensor.untyped_storage()
    if base.data_ptr() in _places:
        _advise(base.data_ptr(), base.nbytes())


def give_back() -> None:
    """Have the C library return freed memory to the system, if it can.

    It keeps some per thread, which another thread's next text doesn't fill.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        _ = ctypes.CDLL(None).malloc_trim(0)


def _advise(place: int, length: int) -> None:
    # The mapping itself is behind the tensor, out of reach, so its address is given; without the call, all stays.
    with contextlib.suppress(OSError, AttributeError, TypeError):
        _ = ctypes.CDLL(None).madvise(ctypes.c_void_p(place), ctypes.c_size_t(length), _PAGEOUT)


def _pieces(tensor: Tensor) -> list[Tensor]:
    """Split a tensor along its first axis longer than 1, to avoid a full copy."""
    if tensor.is_contiguous():
        return [tensor.view(-1)]
    while tensor.shape[0] == 1:
        tensor = tensor[0]
    rows = max(1, BYTES_AT_A_TIME // max(1, tensor[0].numel() * tensor.element_size()))
    return list(tensor.split(rows))
