"""Hatch blocked cells with diagonal lines."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool

from attention_viz.views.style.theme import Palette

__all__ = ["Segment", "add_hatch", "segments", "svg_path"]

# From (key, query) to (key, query), in cells, cell centres at whole numbers.
Segment = tuple[tuple[float, float], tuple[float, float]]

# How many lines cross a matrix at most, so that a large one is hatched as lightly as a small one.
_LINES = 48


def add_hatch(
    figure: go.Figure,
    blocked: Bool[numpy.ndarray, "query key"],
    colours: Palette,
    *,
    key: bool = True,
    size: tuple[int, int] = (1, 1),
    line: Mapping[str, Any] | None = None,
) -> None:
    """Hatch blocked cells, if any, with a legend.

    All lines are one trace: a trace per line would be a hundred times slower.
    """
    if not blocked.any():
        return
    lines = segments(blocked, size)
    common: dict[str, Any] = {"name": "blocked: may not look there", "hoverinfo": "skip"}
    figure.add_scatter(
        x=[x for start, end in lines for x in (start[0], end[0], None)],
        y=[y for start, end in lines for y in (start[1], end[1], None)],
        mode="lines",
        line={"color": colours.blocked, "width": 1} if line is None else dict(line),
        showlegend=False,
        **common,
    )
    if key:
        # In a legend a line lies flat, and a mark slants as on the cells.
        marker = {"symbol": "line-ne", "size": 12, "line": {"color": colours.blocked, "width": 1.5}}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, showlegend=True, **common)


def segments(blocked: Bool[numpy.ndarray, "query key"], size: tuple[int, int] = (1, 1)) -> list[Segment]:
    """Return rising diagonals over blocked cells only.

    Args:
        blocked: True for blocked cells or blocks.
        size: a block's rows and columns; line ends count in cells.
    """
    queries, keys = blocked.shape
    step = max(1, (queries + keys) // _LINES)
    found = [segment for diagonal in range(0, queries + keys - 1, step) for segment in _runs(blocked, diagonal)]
    return found if size == (1, 1) else [(_in_cells(start, size), _in_cells(end, size)) for start, end in found]


def svg_path(
    blocked: Bool[numpy.ndarray, "query key"],
    cell: tuple[float, float],
    *,
    corner: tuple[float, float] = (0.0, 0.0),
    size: tuple[int, int] = (1, 1),
) -> str:
    """Return the hatching as an SVG path; empty for none.

    Args:
        blocked: True for blocked cells or blocks.
        cell: width and height in document units.
    """

    def point(at: tuple[float, float]) -> str:
        return " ".join(f"{begin + (one + 0.5) * side:.1f}" for begin, one, side in zip(corner, at, cell, strict=True))

    return "".join(f"M{point(start)}L{point(end)}" for start, end in segments(blocked, size))


def _in_cells(point: tuple[float, float], size: tuple[int, int]) -> tuple[float, float]:
    return (point[0] + 0.5) * size[1] - 0.5, (point[1] + 0.5) * size[0] - 0.5


def _runs(blocked: Bool[numpy.ndarray, "query key"], diagonal: int) -> Iterator[Segment]:
    """Return blocked stretches on one diagonal, where query + key is constant."""
    queries, keys = blocked.shape
    start, stop = max(0, diagonal - queries + 1), min(diagonal, keys - 1)
    run = [bool(blocked[diagonal - key, key]) for key in range(start, stop + 1)]
    edges = numpy.flatnonzero(numpy.diff([0, *run, 0]))
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        left, right = start + first, start + after - 1
        yield (left - 0.5, diagonal - left + 0.5), (right + 0.5, diagonal - right - 0.5)
