"""Blocked cells are hatched, never just pale: diagonal lines over every cell a query may not look at."""

from collections.abc import Iterator

import numpy
from jaxtyping import Bool

__all__ = ["Segment", "segments"]

# From (key, query) to (key, query), in cells, cell centres at whole numbers.
Segment = tuple[tuple[float, float], tuple[float, float]]

# How many lines cross a matrix at most, so that a large one is hatched as lightly as a small one.
_LINES = 48


def segments(blocked: Bool[numpy.ndarray, "query key"]) -> list[Segment]:
    """Rising diagonal lines that cover the blocked cells and nothing else."""
    queries, keys = blocked.shape
    step = max(1, (queries + keys) // _LINES)
    return [segment for diagonal in range(0, queries + keys - 1, step) for segment in _runs(blocked, diagonal)]


def _runs(blocked: Bool[numpy.ndarray, "query key"], diagonal: int) -> Iterator[Segment]:
    """The stretches of blocked cells on one rising diagonal, where query + key is constant."""
    queries, keys = blocked.shape
    start, stop = max(0, diagonal - queries + 1), min(diagonal, keys - 1)
    run = [bool(blocked[diagonal - key, key]) for key in range(start, stop + 1)]
    edges = numpy.flatnonzero(numpy.diff([0, *run, 0]))
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        left, right = start + first, start + after - 1
        yield (left - 0.5, diagonal - left + 0.5), (right + 0.5, diagonal - right - 0.5)
