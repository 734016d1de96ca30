"""One step of one head as a matrix of colours, with its numbers where they fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.projection import Projection
from attention_viz.operation.rotation import rotation
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.steps import STEPS, transposed
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heatmap import add_hatch, labelled_axis
from attention_viz.views.style.theme import SANS, Palette, ThemeName, colour_scale, diverging, palette, ramp
from attention_viz.views.style.wording import readable, with_minus

__all__ = ["angles", "learned", "steps"]

# Matrices up to this many cells a side have their numbers printed, up to the second their axes named throughout, and
# up to the third number of cells every cell says its own words under the pointer.
_PRINTED_UP_TO = 12
_TOLD_UP_TO = 40_000
# Of more cells than this, the half percent that is largest may share the deepest colour.
_CROWDED = 1_000


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A matrix ready to be drawn: its numbers, −∞ as blocked, and what stands down and across."""

    values: Float[numpy.ndarray, "row column"]
    down: Sequence[str]
    across: Sequence[str]
    titles: tuple[str, str]
    title: str
    colours: tuple[str, str, str]
    weights: bool = False

    def turned(self) -> "_Sheet":
        """The same with rows and columns exchanged."""
        return _Sheet(
            self.values.T,
            self.across,
            self.down,
            (self.titles[1], self.titles[0]),
            self.title,
            self.colours,
            self.weights,
        )


def steps(
    trace: Trace,
    layer: int,
    head: int,
    step: str = "weights",
    stream: str | None = None,
    *,
    side: str = "query",
    notation: str = "rows",
    cell: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """One step of one head, a name in `STEPS`: colours around 0, numbers where they fit, blocked cells hatched.

    Args:
        trace: what was recorded.
        layer: which layer, from 0.
        head: which head, from 0.
        step: which step.
        stream: which stream; None for the only one there is.
        side: of "rotated", whether the "query" or the "key".
        notation: one of `NOTATIONS`; "columns" turns vectors upright, "keys down" turns what has queries and keys.
        cell: row and column to outline, as with tokens as rows.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head or step, or the step isn't known for this trace.
    """
    stream = trace.stream(stream)
    opened = open_head(trace, layer, head, stream)
    if step not in STEPS:
        raise ShapeError(f"the step {step!r} was asked for; there are {', '.join(STEPS)}")
    colours = palette(theme)
    sheet = _sheet(opened, step, side, colours)
    blocked = numpy.isneginf(_numbers(opened.attention.masked) if step == "weights" else sheet.values)
    if transposed(STEPS[step], notation):
        return _figure(sheet.turned(), blocked.T, None if cell is None else (cell[1], cell[0]), colours)
    return _figure(sheet, blocked, cell, colours)


def learned(
    trace: Trace,
    layer: int,
    head: int,
    name: str,
    projection: Projection,
    stream: str | None = None,
    *,
    notation: str = "rows",
    theme: ThemeName = "light",
) -> go.Figure:
    """A learned matrix of one head, input down and output across: what turns a token's vector into its query, say.

    Args:
        trace: what was recorded.
        layer: which layer, from 0.
        head: which head, from 0.
        name: "query", "key", "value" or "output".
        projection: the matrix.
        stream: which stream; None for the only one there is.
        notation: "columns" has the output down and the input across.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    trace.attention(layer, stream).head(head)  # refuses what isn't there
    colours, values = palette(theme), _numbers(projection.weight)
    sizes = [[str(c) for c in range(count)] for count in values.shape]
    titles = ("dimension in", "dimension out")
    sheet = _Sheet(values, sizes[0], sizes[1], titles, f"W_{name[0].upper()}", _family(name, colours))
    sheet = sheet.turned() if notation == "columns" else sheet
    return _figure(sheet, numpy.zeros(sheet.values.shape, bool), None, colours)


def angles(trace: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """By how much each position turned each pair of dimensions, in radians, for models that rotate.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head, or its model turns nothing that was recorded.
    """
    stream = trace.stream(stream)
    opened = open_head(trace, layer, head, stream)
    found = rotation(opened.unrotated("query"), opened.attention.query) if opened.rotates else None
    if found is None:
        raise ShapeError("angles were asked for, and no rotation of queries was recorded in this trace")
    colours, pairs = palette(theme), [f"{first}, {second}" for first, second in found.pairs]
    values, rows = _numbers(found.angles), _labels(trace, stream, "query", len(found.angles))
    sheet = _Sheet(values, rows, pairs, ("query", "pair of dimensions"), "Angle in radians", _family("", colours))
    return _figure(sheet, numpy.zeros_like(values, bool), None, colours)


def _sheet(opened: OpenHead, step: str, side: str, colours: Palette) -> _Sheet:
    """A step's numbers with what names them; "rotated" is two matrices, of which the side chooses one."""
    matrix, axes, name, family = STEPS[step].function(opened), STEPS[step].axes, STEPS[step].label, step
    if matrix is None:
        raise ShapeError(f"the step {step!r} was asked for, and it was not recorded in this trace")
    if step == "rotated":
        name, family = f"{name} {side}", side
        if side == "key":
            matrix, axes = opened.attention.key, ("key", "d_k")
    down, across = (
        _labels(opened.trace, opened.stream, axis, count) for axis, count in zip(axes, matrix.shape, strict=True)
    )
    titles = (_WORDS[axes[0]], _WORDS[axes[1]])
    return _Sheet(_numbers(matrix), down, across, titles, name, _family(family, colours), step == "weights")


_WORDS = {
    "token": "token",
    "query": "query: who is looking",
    "key": "key: who is looked at",
    "d_model": "dimension",
    "d_k": "dimension",
    "d_v": "dimension",
}


def _numbers(tensor: Tensor) -> Float[numpy.ndarray, "row column"]:
    return tensor.detach().float().cpu().numpy()


def _labels(trace: Trace, stream: str, axis: str, count: int) -> list[str]:
    if axis not in ("token", "query", "key"):
        return [str(c) for c in range(count)]
    tokens = trace.key_tokens(stream) if axis == "key" else trace.query_tokens(stream)
    return readable(tokens.labels)


def _family(step: str, colours: Palette) -> tuple[str, str, str]:
    """What the smallest, 0 and the largest are drawn in: of query, key and value, towards their own colour."""
    own = {"query": colours.query, "key": colours.key, "value": colours.value, "output": colours.value}
    accent = {"embeddings": colours.accent, "joined": colours.accent}
    if step in own or step in accent:
        return colours.muted, colours.background, (own | accent)[step]
    return colours.difference_low, colours.difference_middle, colours.difference_high


def _figure(
    sheet: _Sheet, blocked: Bool[numpy.ndarray, "row column"], cell: tuple[int, int] | None, colours: Palette
) -> go.Figure:
    figure = go.Figure([_cells(sheet, blocked, colours)])
    add_hatch(figure, blocked, colours)
    if cell is not None:
        row, column = cell
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": colours.ink, "width": 2.5},
        )
    figure.update_layout(
        title={"text": sheet.title, "font": {"size": 13}, "x": 0.01},
        font={"family": SANS, "color": colours.ink, "size": 12},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        height=_height(sheet.values.shape),
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
    )
    (down, across), (rows, columns) = sheet.titles, (list(sheet.down), list(sheet.across))
    figure.update_xaxes(**labelled_axis(columns, across, _tone(across, colours), colours, vertical=False))
    figure.update_yaxes(**labelled_axis(rows, down, _tone(down, colours), colours, vertical=True))
    return figure


def _tone(title: str, colours: Palette) -> str:
    return colours.query if title.startswith("query") else colours.key if title.startswith("key") else colours.muted


def _height(shape: tuple[int, int]) -> int:
    return min(560, max(220, 130 + 24 * shape[0]))


def _cells(sheet: _Sheet, blocked: Bool[numpy.ndarray, "row column"], colours: Palette) -> go.Heatmap:
    values = numpy.where(numpy.isfinite(sheet.values), sheet.values, numpy.nan)
    sizes = numpy.abs(values[numpy.isfinite(values)])
    largest = _limit(sizes)
    beyond = "and beyond" if not sheet.weights and sizes.max(initial=0.0) > largest else ""
    printed = max(values.shape) <= _PRINTED_UP_TO
    told = values.size <= _TOLD_UP_TO
    return go.Heatmap(
        z=values,
        zmin=0 if sheet.weights else -largest,
        zmax=(1.0 if max(values.shape) <= 48 else largest) if sheet.weights else largest,
        colorscale=_scale(sheet, colours),
        hovertext=_said(sheet, blocked) if told else None,
        hovertemplate="%{hovertext}<extra></extra>" if told else "row %{y}, column %{x}: %{z:.6f}<extra></extra>",
        text=_printed(values) if printed else None,
        texttemplate="%{text}" if printed else None,
        xgap=1 if printed else 0,
        ygap=1 if printed else 0,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".3~g", "title": {"text": beyond}},
    )


def _limit(sizes: Float[numpy.ndarray, " cell"]) -> float:
    """The size that gets the deepest colour: the largest, or where a few cells tower over thousands, most of them."""
    largest = float(sizes.max(initial=0.0)) or 1.0
    most = float(numpy.quantile(sizes, 0.995)) if sizes.size > _CROWDED else largest
    return most if 0 < most < largest / 2 else largest


def _scale(sheet: _Sheet, colours: Palette) -> list[list[Any]]:
    if sheet.weights:
        stops = ramp(colours.weight_low, colours.weight_high)
    else:
        low, middle, high = sheet.colours
        stops = diverging(low, middle, high, 6)
    return colour_scale(stops)


def _printed(values: Float[numpy.ndarray, "row column"]) -> list[list[str]]:
    return [["" if numpy.isnan(value) else with_minus(f"{value:.2f}") for value in row] for row in values]


def _said(sheet: _Sheet, blocked: Bool[numpy.ndarray, "row column"]) -> list[list[str]]:
    return [
        [
            f"{down} · {across}: {'blocked' if blocked[i, j] else with_minus(f'{sheet.values[i, j]:.6f}')}"
            for j, across in enumerate(sheet.across)
        ]
        for i, down in enumerate(sheet.down)
    ]
