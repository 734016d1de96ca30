"""Make a long run's output rows only when read.

The logits of 8,000 tokens over a vocabulary of 49,152 are 1.6 GB, and few rows are ever read.
"""

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.trace.resting import RestingFile

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["LATE", "LateOutput", "Make", "by_row", "first_rows", "whole_output"]

# Where a trace keeps an output that isn't made yet.
LATE = "_late output"
# Rows that are made together, always the same ones, so that a row has the same last digits however it is asked for.
ROWS_TOGETHER = 64
# So many outputs keep the rows that they made last, which with a large vocabulary are 12 MB: a server has many traces.
_MOST_HOLDING = 4
# Those that do, the last to have made some at the end.
_holders, _holding = list["weakref.ref[LateOutput]"](), threading.Lock()

# Makes the output's rows from `start` to `stop`.
Make = Callable[[int, int], Float[Tensor, "position width"]]


class LateOutput:
    """An output, (position, width), whose rows are made when read, by number or slice.

    Attributes:
        held: its sources, if kept for it alone.
    """

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
        """Set how rows are made.

        Args:
            check: called before rows are made; raises if they would be another run's.
            rest: where to write the whole; None for memory.
        """
        self.shape, self.dtype, self.held = shape, dtype, tuple(held)
        self._make, self._check, self._rest = make, check, rest
        # Whoever reads one row reads its neighbours next, or the same once more.
        self._last: tuple[int, Tensor] | None = None
        self._making = threading.Lock()

    def __len__(self) -> int:
        """How many rows it has."""
        return self.shape[0]

    def numel(self) -> int:
        """How many numbers it has."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Return one row, (width,), or a stepless slice, (position, width)."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return self._rows(start, max(start, stop))
        place = range(len(self))[rows]
        return self._rows(place, place + 1)[0]

    def first(self, count: int) -> "LateOutput":
        """The same of the first rows alone."""
        shape = (count, self.shape[1])
        return LateOutput(shape, self.dtype, lambda start, stop: self[start:stop], held=self.held)

    def whole(self) -> Float[Tensor, "position width"]:
        """All rows, made now."""
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


def by_row(trace: "Trace") -> Tensor | LateOutput:
    """Return a trace's output, made only row by row."""
    found = vars(trace)
    return found["output"] if "output" in found else found[LATE]


def whole_output(trace: "Trace") -> Float[Tensor, "position width"]:
    """All rows of the output; those of a long text are made when they are first needed."""
    return vars(trace)[LATE].whole()


def first_rows(output: Tensor | LateOutput, count: int) -> Tensor | LateOutput:
    """Return an output's first rows, equally late."""
    return output[:count] if isinstance(output, Tensor) else output.first(count)
