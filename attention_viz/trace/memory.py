"""Save memory: map a long trace's tensors from a file, and compute its output's rows on demand."""

import contextlib
import ctypes
import math
import mmap
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer

if TYPE_CHECKING:
    from typing import IO

# What a call has of its own; the others, such as masks, are shared by layers.
_OWN = ("query", "key", "value", "decay", "write", "gate", "floor")
# After so many bytes the memory that calls took is given back: else it stays with the process, in pieces of a size that
# the next layers don't fill. Giving it back more often would cost a short text 2 % of its run.
_EVERY = 64_000_000
# So many tensors of a device may be on their way into the file: two layers' queries, keys and values.
MOST_LEAVING = 6
# Linux's MADV_PAGEOUT, which Python 3.11 has no name for: pages go, and what was written into them is kept.
_PAGEOUT = 21
# Where in memory the mapped tensors begin, as long as they are mapped.
_places: set[int] = set()
# Bytes copied at a time if a tensor isn't contiguous.
BYTES_AT_A_TIME = 32_000_000
# Rows are always made in these blocks, so that a row has the same last digits however it is read.
ROWS_TOGETHER = 64
# So many outputs keep the rows that they made last, which with a large vocabulary are 12 MB: a server has many traces.
_MOST_HOLDING = 4
# Those that do, the last to have made some at the end.
_holders, _holding = list["weakref.ref[LateOutput]"](), threading.Lock()

_Call = TypeVar("_Call", Attention, TokenMixer)
# Makes the output's rows from `start` to `stop`.
Make = Callable[[int, int], Float[Tensor, "position width"]]


class RestingFile:
    """A nameless file of tensors in the temporary folder (TMPDIR), deleted with its last tensor.

    Tensors of other devices leave these: a copy into pinned memory begins at once, beside the device's own work, and a
    thread writes it into the file once it is whole.
    """

    def __init__(self) -> None:
        """Create an empty file."""
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="attention_viz-")
        _ = weakref.finalize(self, self._file.close)
        self._taken = 0
        # Where the file ends; several threads may write at once, since a device's tensors leave in one of their own.
        self._end, self._writing = 0, threading.Lock()
        self._writer: ThreadPoolExecutor | None = None
        # What is on its way into the file, the oldest first; and masks that came from a device.
        self._leaving = list["Future[None]"]()
        self._shared = dict[int, tuple[Tensor, Tensor]]()

    def take(self, call: _Call) -> _Call:
        """Move a call's own tensors, such as query, key and value, into the file; shared masks stay in memory.

        Tensors of a device have no numbers before `settle`.
        """
        if self._taken >= _EVERY:
            self._taken = 0
            give_back()
        return map_terms(call, lambda term, value: self._leave(value) if term.name in _OWN else self._share(value))

    def settle(self) -> None:
        """Wait for tensors on their way into the file."""
        while self._leaving:
            self._leaving.pop(0).result()
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None
        self._shared.clear()

    def _leave(self, tensor: Tensor) -> Tensor:
        """Put a tensor into the file; one of a device gets there later, as the tensor that this returns."""
        if not is_elsewhere(tensor) or tensor.requires_grad or not tensor.numel():
            return self.put(tensor)
        copy, wait = begin_copy(tensor)

        def write() -> None:
            wait()
            written = self.put(copy)
            if written is not copy:
                copy.set_(written.untyped_storage(), written.storage_offset(), written.shape, written.stride())

        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "attention_viz-file")
        self._leaving.append(self._writer.submit(write))
        while len(self._leaving) > MOST_LEAVING:  # pinned memory is dear
            self._leaving.pop(0).result()
        return copy

    def _share(self, value: Any) -> Any:
        """Bring a mask of a device to memory, once for all layers."""
        if not isinstance(value, Tensor) or not is_elsewhere(value):
            return value
        if id(value) not in self._shared:
            self._shared[id(value)] = value, value.cpu()
        return self._shared[id(value)][1]

    def put(self, tensor: Tensor) -> Tensor:
        """Write a tensor and return it mapped; keep it if empty, without room, or if it needs a gradient."""
        if is_elsewhere(tensor) and not tensor.requires_grad:
            tensor = tensor.cpu()
        if tensor.requires_grad or tensor.device.type != "cpu" or not tensor.numel():
            return tensor
        try:
            return self._put(tensor)
        except OSError:
            return tensor

    def collect(self, shape: tuple[int, ...], dtype: torch.dtype, pieces: Callable[[], Iterable[Tensor]]) -> Tensor:
        """Write pieces along the first axis and return the tensor mapped; without room, build it in memory."""
        try:
            return self._write(shape, dtype, pieces())
        except OSError:
            return torch.cat(list(pieces()))

    def _put(self, tensor: Tensor) -> Tensor:
        self._taken += tensor.nbytes
        order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
        dense = tensor.permute(order)
        if not dense.is_contiguous():
            return self._write(tensor.shape, tensor.dtype, _pieces(tensor))
        # As it lies in memory, so that nothing is copied on the way.
        back = sorted(range(tensor.ndim), key=order.__getitem__)
        return self._write(dense.shape, tensor.dtype, [dense.view(-1)]).permute(back)

    def _write(self, shape: Sequence[int], dtype: torch.dtype, pieces: Iterable[Tensor]) -> Tensor:
        file, length = self._file, math.prod(shape) * dtype.itemsize
        with self._writing:
            start = at = -(-self._end // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            self._end = start + length
        for piece in pieces:
            data = piece.contiguous().view(torch.uint8).numpy().data
            with self._writing:
                _ = file.seek(at)
                at += file.write(data)
                file.flush()
        # A private mapping: writing into the tensor changes a copy of the page, as in ordinary memory.
        mapped = mmap.mmap(file.fileno(), length, offset=start, access=mmap.ACCESS_COPY)
        rested = torch.from_numpy(numpy.frombuffer(mapped, numpy.uint8)).view(dtype).view(*shape)
        place = rested.data_ptr()
        _places.add(place)
        _ = weakref.finalize(mapped, _places.discard, place)
        return rested


def is_elsewhere(tensor: Tensor) -> bool:
    """Return whether a tensor's numbers are on another device than the CPU."""
    return tensor.device.type not in ("cpu", "meta")


def begin_copy(tensor: Tensor) -> tuple[Tensor, Callable[[], object]]:
    """Begin to copy a device's tensor to memory; return the copy, and a function that waits until it is whole."""
    if tensor.device.type != "cuda":
        return tensor.to("cpu", copy=True), lambda: None
    copy = torch.empty_like(tensor, device="cpu", pin_memory=True)
    copy.copy_(tensor, non_blocking=True)
    arrived = torch.accelerator.current_stream(tensor.device).record_event()
    return copy, arrived.synchronize


def is_resting(tensor: Tensor) -> bool:
    """Return whether a tensor is in a mapped file."""
    return tensor.untyped_storage().data_ptr() in _places


def bytes_of(tensors: Iterable[Tensor], *, resting: bool) -> int:
    """Count tensors' bytes, in memory or mapped; shared storage once, a view's storage whole."""
    storages = [one.untyped_storage() for one in tensors if is_resting(one) == resting]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def set_aside(tensor: Tensor) -> None:
    """Release a mapped tensor's memory; it is read again on use."""
    base = tensor.untyped_storage()
    if base.data_ptr() in _places:
        _advise(base.data_ptr(), base.nbytes())


def give_back() -> None:
    """Have the C library return freed memory, which it keeps per thread, to the system."""
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


class LateOutput:
    """An output, (position, width), computed when read by number or slice; `held` are tensors in memory only for it."""

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: torch.dtype,
        make: Make,
        *,
        check: Callable[[], object] = lambda: None,
        held: Sequence[Tensor] = (),
        rest: RestingFile | None = None,
    ) -> None:
        """Set how rows are computed.

        Args:
            check: called before rows are computed; raises if they would be another run's.
            rest: the file for the whole output; None for memory.
        """
        self.shape, self.dtype, self.held = shape, dtype, tuple(held)
        self._make, self._check, self._rest = make, check, rest
        # Whoever reads one row reads its neighbours next, or the same once more.
        self._last: tuple[int, Tensor] | None = None
        self._making = threading.Lock()

    def __len__(self) -> int:
        """Count the rows."""
        return self.shape[0]

    def numel(self) -> int:
        """Count the numbers."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Return one row, (width,), or a stepless slice, (position, width)."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return self._rows(start, max(start, stop))
        place = range(len(self))[rows]
        return self._rows(place, place + 1)[0]

    def first(self, count: int) -> "LateOutput":
        """Return an output of the first rows."""
        shape = (count, self.shape[1])
        return LateOutput(shape, self.dtype, lambda start, stop: self[start:stop], held=self.held)

    def last(self, count: int) -> "LateOutput":
        """Return an output of the last rows."""
        before = len(self) - count
        shape = (count, self.shape[1])
        return LateOutput(shape, self.dtype, lambda start, stop: self[before + start : before + stop], held=self.held)

    def whole(self) -> Float[Tensor, "position width"]:
        """Compute all rows."""
        self._check()

        def blocks() -> Iterator[Tensor]:
            return (self._block(start) for start in range(0, len(self), ROWS_TOGETHER))

        return torch.cat(list(blocks())) if self._rest is None else self._rest.collect(self.shape, self.dtype, blocks)

    def _rows(self, start: int, stop: int) -> Tensor:
        if start == stop:
            return torch.empty(0, self.shape[1], dtype=self.dtype)
        first = start - start % ROWS_TOGETHER
        blocks = [self._kept(place) for place in range(first, stop, ROWS_TOGETHER)]
        found = torch.cat(blocks) if len(blocks) != 1 else blocks[0]
        return found[start - first : stop - first]

    def _kept(self, start: int) -> Tensor:
        with self._making:
            found = self._last
            if found is None or found[0] != start:
                self._check()
                found = self._last = (start, self._block(start))
                self._have_others_let_go()
            return found[1]

    def _have_others_let_go(self) -> None:
        with _holding:
            others = [one for holder in _holders if (one := holder()) is not None and one is not self]
            _holders[:] = [weakref.ref(one) for one in (*others, self)][-_MOST_HOLDING:]
            for one in others[: 1 - _MOST_HOLDING]:
                one._last = None

    def _block(self, start: int) -> Tensor:
        return self._make(start, min(start + ROWS_TOGETHER, len(self)))


def first_rows(output: Tensor | LateOutput, count: int) -> Tensor | LateOutput:
    """Return an output's first rows, still computed on demand."""
    return output[:count] if isinstance(output, Tensor) else output.first(count)


def last_rows(output: Tensor | LateOutput, count: int) -> Tensor | LateOutput:
    """Return an output's last rows: a copy, or still computed on demand."""
    return output[len(output) - count :].clone() if isinstance(output, Tensor) else output.last(count)
