"""Mark a matrix's cells: legible numbers, hatching for blocked ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool

from attention_viz.views.style.theme import Palette, ink_on, on_ramp

# A weight or a change of one that is less than this isn't written: its cell is as good as empty. The explorer's
# `data/scale.js` has the same.
LEAST = 0.05
# What the cells are called that hold numbers in the other ink.
NUMBERS = "numbers"
_CLEAR = "rgba(0,0,0,0)"
# Plotly fits letters to cells by those that have some: an empty cell counts as well.
_EMPTY = " "
# From (key, query) to (key, query), in cells, cell centres at whole numbers.
Segment = tuple[tuple[float, float], tuple[float, float]]

# How many lines cross a matrix at most, so that a large one is hatched as lightly as a small one.
_LINES = 48


def add_numbers(
    figure: go.Figure,
    written: Callable[[float], str] | Sequence[Sequence[str]],
    *,
    at: int = 0,
    least: float = 0.0,
    blocked: Any = None,
    size: int | None = None,
    **place: Any,
) -> None:
    """Write numbers or texts into the cells of trace `at` in legible ink; clear cells on top hold a second ink."""
    parts: Any = figure.data
    cells = parts[at]
    values: Any = numpy.asarray(cells["z"], dtype=float)
    stops: list[str] = [colour for _, colour in cells["colorscale"]]
    low, high = float(cells["zmin"]), float(cells["zmax"])
    shown = ~numpy.isnan(values) & (numpy.abs(numpy.nan_to_num(values)) >= least)
    shown = shown if blocked is None else shown & ~blocked
    inks = [
        [ink_on(on_ramp(stops, (value - low) / (high - low))) if here else "" for value, here in zip(*row, strict=True)]
        for row in zip(values.tolist(), shown.tolist(), strict=True)
    ]
    texts = values.tolist() if callable(written) else written
    write: Callable[[Any], str] = written if callable(written) else str
    for number, ink in enumerate(sorted({ink for row in inks for ink in row if ink})):
        text = [
            [write(one) if its == ink else _EMPTY for one, its in zip(*row, strict=True)]
            for row in zip(texts, inks, strict=True)
        ]
        print_in = {"text": text, "texttemplate": "%{text}", "textfont": {"color": ink, "size": size}}
        if number == 0:
            cells.update(print_in)
        else:
            figure.add_trace(_over(cells, values, print_in), **place)


def heatmaps(figure: go.Figure) -> list[Any]:
    """Return the heatmaps, including number holders."""
    parts: Any = figure.data
    return [part for part in parts if part.type == "heatmap"]


def _over(cells: go.Heatmap, values: Any, print_in: dict[str, Any]) -> go.Heatmap:
    return go.Heatmap(
        z=numpy.zeros_like(values),
        zmin=0,
        zmax=1,
        colorscale=[[0, _CLEAR], [1, _CLEAR]],
        showscale=False,
        hoverinfo="skip",
        name=NUMBERS,
        xgap=cells["xgap"],
        ygap=cells["ygap"],
        **print_in,
    )


def add_hatch(
    figure: go.Figure,
    blocked: Bool[numpy.ndarray, "query key"],
    colours: Palette,
    *,
    key: bool = True,
    size: tuple[int, int] = (1, 1),
    line: Mapping[str, Any] | None = None,
    name: str = "blocked: may not attend there",
) -> None:
    """Hatch blocked cells, if any, with a legend, as one trace: a trace per line would be slow."""
    if not blocked.any():
        return
    lines = segments(blocked, size)
    common: dict[str, Any] = {"name": name, "hoverinfo": "skip"}
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
    """Return rising diagonals over blocked cells or blocks of that size; line ends count in cells."""
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
    """Return the hatching as an SVG path, cells in document units; empty for none."""

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
