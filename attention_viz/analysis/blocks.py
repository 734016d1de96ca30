"""Large matrices as one number per block, never wholly in memory."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
from jaxtyping import Bool, Float

from attention_viz.analysis.signed import open_cells
from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.token_mixer import TokenMixer

# A matrix of more cells than this is drawn from blocks: a picture has some 560 × 560 dots for them.
MOST_CELLS = 250_000
# Blocks along a side: a block is two dots wide at least, so that one that stands out is still seen.
_SIDE = 256
# How many cells are computed at a time: 16 MiB in float32.
CELLS_AT_A_TIME = 4_000_000

# What a matrix holds in some of its rows: the numbers, and which of them are blocked.
Rows = Callable[[slice], tuple[Float[numpy.ndarray, "row column"], Bool[numpy.ndarray, "row column"]]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A matrix in blocks of neighbouring cells, each its number furthest from 0; the last may be smaller."""

    values: Float[numpy.ndarray, "row column"]
    blocked: Bool[numpy.ndarray, "row column"]
    shape: tuple[int, int]
    size: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Whether each cell is drawn by itself."""
        return self.size == (1, 1)

    def ranges(self, axis: int) -> list[tuple[int, int]]:
        """Return each block's first and last position along an axis: 0 rows, 1 columns."""
        count, length = self.shape[axis], self.size[axis]
        return [(start, min(start + length, count) - 1) for start in range(0, count, length)]

    def turned(self) -> "Blocks":
        """Return the matrix with rows and columns exchanged."""
        return Blocks(self.values.T, self.blocked.T, (self.shape[1], self.shape[0]), (self.size[1], self.size[0]))


def block_size(shape: tuple[int, int], most: int = MOST_CELLS) -> tuple[int, int]:
    """Return the blocks' rows and columns; (1, 1) if all cells fit."""
    rows, columns = shape
    if rows * columns <= most:
        return 1, 1
    side = max(1, min(_SIDE, math.isqrt(most)))
    return -(-rows // side), -(-columns // side)


def row_slices(rows: int, columns: int, multiple: int = 1) -> Iterator[slice]:
    """Slice a matrix's rows to fit easily into memory."""
    step = max(1, CELLS_AT_A_TIME // max(1, columns * multiple)) * multiple
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def blocks_of(shape: tuple[int, int], rows: Rows, most: int = MOST_CELLS) -> Blocks:
    """Reduce a matrix, computed in row slices, to at most `most` blocks."""
    size = block_size(shape, most)
    if size == (1, 1):
        return Blocks(*rows(slice(0, shape[0])), shape, size)
    values, blocked = list[numpy.ndarray](), list[numpy.ndarray]()
    for some in row_slices(*shape, size[0]):
        numbers, closed = rows(some)
        values.append(_furthest_from_nought(numbers, size))
        blocked.append(numpy.logical_and.reduce(_in_parts(closed, size, True), axis=(1, 3)))
    return Blocks(numpy.concatenate(values), numpy.concatenate(blocked), shape, size)


def call_blocks(
    call: Attention | TokenMixer,
    numbers: Callable[[Any], Float[numpy.ndarray, "row column"]] | None = None,
    most: int = MOST_CELLS,
) -> Blocks:
    """Reduce one head's weights, or other `numbers` of its call's rows, to blocks."""
    shape = (call.shape[-2], call.shape[-1])
    return blocks_of(shape, partial(_rows, call, numbers or _sound_weights), most)


def _rows(
    call: Attention | TokenMixer, numbers: Callable[[Any], numpy.ndarray], some: slice
) -> tuple[numpy.ndarray, numpy.ndarray]:
    part = call if some == slice(0, call.shape[-2]) else call.rows(some)
    return numbers(part), blocked_of(part)


def matrix_blocks(
    values: Float[numpy.ndarray, "row column"],
    blocked: Bool[numpy.ndarray, "row column"] | None = None,
    most: int = MOST_CELLS,
) -> Blocks:
    """Reduce a matrix in memory to blocks."""
    closed = numpy.zeros(values.shape, dtype=bool) if blocked is None else blocked
    return blocks_of((values.shape[0], values.shape[1]), lambda rows: (values[rows], closed[rows]), most)


def weights_of(call: Attention | TokenMixer) -> Float[numpy.ndarray, "*head query key"]:
    """Return a call's weights in float32."""
    return call.weights.detach().float().cpu().numpy()


def _sound_weights(call: Attention | TokenMixer) -> Float[numpy.ndarray, "query key"]:
    weights = weights_of(call)
    refuse_broken(weights)
    return weights


def refuse_broken(weights: Float[numpy.ndarray, "row column"]) -> None:
    """Refuse numbers that were never computed, because blanks or zeros would mislead."""
    if not numpy.isfinite(weights).all():
        raise TraceError("can't draw the head: some of its weights aren't finite numbers")


def blocked_of(call: Attention | TokenMixer) -> Bool[numpy.ndarray, "query key"]:
    """Return one head's blocked cells as True; without a softmax, those that no value can reach."""
    if isinstance(call, TokenMixer):
        return ~open_cells(call).numpy()
    if call.allowed is None:
        return numpy.zeros(call.shape, dtype=bool)
    return ~numpy.broadcast_to(call.allowed.detach().cpu().numpy(), call.shape)


def _furthest_from_nought(cells: numpy.ndarray, size: tuple[int, int]) -> numpy.ndarray:
    parts = _in_parts(numpy.where(numpy.isfinite(cells), cells, numpy.nan), size, numpy.nan)
    low, high = numpy.fmin.reduce(parts, axis=(1, 3)), numpy.fmax.reduce(parts, axis=(1, 3))
    return numpy.where(high >= -low, high, low)


def _in_parts(cells: numpy.ndarray, size: tuple[int, int], nothing: float) -> numpy.ndarray:
    """Return (block row, row in it, block column, column in it), padded with `nothing`."""
    down, across = (-(-count // length) for count, length in zip(cells.shape, size, strict=True))
    filled = numpy.full((down * size[0], across * size[1]), nothing, dtype=cells.dtype)
    filled[: cells.shape[0], : cells.shape[1]] = cells
    return filled.reshape(down, size[0], across, size[1])
