"""The tensors of long traces in a file that is mapped into memory, so that a machine holds more of them."""

import contextlib
import ctypes
import mmap
import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy
import torch
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import map_terms

if TYPE_CHECKING:
    from typing import IO

__all__ = ["RestingFile", "bytes_of", "is_resting", "set_aside", "settle"]

# What a call has of its own.
_OWN = ("query", "key", "value")
# After so many calls the memory that theirs took is given back: else it stays with the process, in pieces of a size
# that the next layers don't fill.
_EVERY = 4
# Linux's MADV_PAGEOUT, which Python 3.11 has no name for: pages go, and what was written into them is kept.
_PAGEOUT = 21
# Where in memory the mapped tensors begin, as long as they are mapped.
_places: set[int] = set()
# Where those begin that are being written meanwhile, and who writes them.
_soon: set[int] = set()
_writers: set[threading.Thread] = set()
# How many bytes are copied at a time where a tensor doesn't lie in one piece.
_AT_A_TIME = 32_000_000


class RestingFile:
    """A file without a name that tensors are written to; it goes when the last of them does.

    It lies where the system keeps temporary files, which TMPDIR says.
    """

    def __init__(self) -> None:
        """Begin with an empty file, once what is still being written of others has left memory.

        Raises:
            OSError: there is no place for it.
        """
        settle()
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="attention_viz-")
        _ = weakref.finalize(self, self._file.close)
        self._taken = 0

    def take(self, call: Attention) -> Attention:
        """The call with its query, key and value in the file; its masks, which layers share, stay where they are."""
        self._taken += 1
        if self._taken % _EVERY == 0:
            _give_back()
        return map_terms(call, lambda term, value: self.put(value) if term.name in _OWN else value)

    def put(self, tensor: Tensor) -> Tensor:
        """Write a tensor and hand back the same numbers out of the file, read when they are looked at.

        What needs a gradient, lies on another device, is empty, or finds no more room stays as it is.
        """
        if tensor.requires_grad or tensor.device.type != "cpu" or not tensor.numel():
            return tensor
        try:
            return self._put(tensor)
        except OSError:
            return tensor

    def put_output(self, holders: Sequence[object]) -> None:
        """Write the output that some things hold, beside whoever goes on, and then have them hold it out of the file.

        Of a model with many tokens it is most of what a run hands out, and a first picture asks for none of it. It
        counts as resting from now on. `settle` waits for it.

        Args:
            holders: what has one tensor as its `output`; what is gone meanwhile is left out.
        """
        output: Tensor = vars(holders[0])["output"]
        place, held = output.untyped_storage().data_ptr(), [weakref.ref(one) for one in holders]
        _soon.add(place)
        writer = threading.Thread(target=self._put_output, args=([output], place, held), daemon=True)
        _writers.add(writer)
        writer.start()

    def _put_output(self, output: list[Tensor], place: int, holders: Sequence["weakref.ref[object]"]) -> None:
        try:
            rested = self.put(output.pop())
            for holder in filter(None, (one() for one in holders)):
                vars(holder)["output"] = rested
        finally:
            _soon.discard(place)
            _writers.discard(threading.current_thread())
            _give_back()

    def _put(self, tensor: Tensor) -> Tensor:
        file = self._file
        start = -(-file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        _ = file.seek(start)
        for piece in _pieces(tensor):
            _ = file.write(piece.contiguous().view(torch.uint8).numpy().data)
        file.flush()
        length = tensor.numel() * tensor.element_size()
        # A private mapping: whoever writes into the tensor changes a copy of the page, as in memory of its own.
        mapped = mmap.mmap(file.fileno(), length, offset=start, access=mmap.ACCESS_COPY)
        rested = torch.from_numpy(numpy.frombuffer(mapped, numpy.uint8)).view(tensor.dtype).view(tensor.shape)
        place = rested.data_ptr()
        _places.add(place)
        _ = weakref.finalize(mapped, _places.discard, place)
        return rested


def is_resting(tensor: Tensor) -> bool:
    """Whether a tensor's numbers lie in a mapped file, not in memory of their own."""
    return tensor.untyped_storage().data_ptr() in _places


def settle() -> None:
    """Wait until every output that is on its way into a file is there."""
    for writer in tuple(_writers):
        writer.join()


def bytes_of(tensors: Iterable[Tensor], *, resting: bool) -> int:
    """How many bytes tensors take, in memory or in a mapped file; what several share counts once, a view as a whole.

    What is being written into a file counts as there.
    """
    storages = [one.untyped_storage() for one in tensors]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    return sum(size for place, size in sizes.items() if (place in _places or place in _soon) == resting)


def set_aside(tensor: Tensor) -> None:
    """Let go of what a mapped tensor takes of memory since it was looked at; it is read again when it is looked at."""
    base = tensor.untyped_storage()
    if base.data_ptr() in _places:
        _advise(base.data_ptr(), base.nbytes())


def _give_back() -> None:
    """Have the C library give memory that was freed back to the system, where it knows how."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        _ = ctypes.CDLL(None).malloc_trim(0)


def _advise(place: int, length: int) -> None:
    # The mapping itself is behind the tensor, out of reach, so its address is given; without the call, all stays.
    with contextlib.suppress(OSError, AttributeError, TypeError):
        _ = ctypes.CDLL(None).madvise(ctypes.c_void_p(place), ctypes.c_size_t(length), _PAGEOUT)


def _pieces(tensor: Tensor) -> list[Tensor]:
    """A tensor in parts along its first axis that has several, so that no copy of all of it is made."""
    if tensor.is_contiguous():
        return [tensor.view(-1)]
    while tensor.shape[0] == 1:
        tensor = tensor[0]
    rows = max(1, _AT_A_TIME // max(1, tensor[0].numel() * tensor.element_size()))
    return list(tensor.split(rows))
