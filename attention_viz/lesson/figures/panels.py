"""Small signed matrices on one sheet, with their numbers printed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.views.style.axes import arrange, labelled_axis
from attention_viz.views.style.blocks import cells, hover_texts
from attention_viz.views.style.marks import add_numbers, heatmaps
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, readable, with_minus

# Pixels: a row of cells, the names around a panel, and the room above the first.
_ROW, _AROUND, _ABOVE = 26, 70, 44
# What slanted names need below a panel.
_SLANTED = 30
# More columns than this leave a number too little room on a phone.
_PRINTED_UP_TO = 12


@dataclass(frozen=True, eq=False)
class Panel:
    """A matrix of signed numbers, NaN where there is none.

    Attributes:
        line: the outlined row, or column if `upright`.
        digits: the most after the point.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    numbers: Sequence[Sequence[float]]
    line: int | None = None
    digits: int = 2
    upright: bool = False


def panels(grid: Sequence[Sequence[Panel]], theme: ThemeName) -> go.Figure:
    """Draw rows of one or two panels in the colours of plus and minus, each up to its own largest number."""
    colours, high = palette(theme), [max(len(panel.rows) for panel in row) for row in grid]
    axes = [labelled_axis(list(panel.columns), "", "", colours, vertical=False) for row in grid for panel in row]
    around = _AROUND + (_SLANTED if any(axis["tickangle"] for axis in axes) else 0)
    height = _ABOVE + _ROW * sum(high) + around * len(grid)
    wide = max(map(len, grid))
    figure = make_subplots(
        len(grid),
        wide,
        specs=[[{"colspan": 1 + wide - len(row)}, *([{}] if len(row) > 1 else [None] * (wide - 1))] for row in grid],
        row_heights=high,
        vertical_spacing=around / height,
        horizontal_spacing=0.22,
        subplot_titles=[escaped(panel.title) for row in grid for panel in row],
    )
    for down, row in enumerate(grid, 1):
        for across, panel in enumerate(row, 1):
            _add(figure, panel, colours, {"row": down, "col": across})
    arrange(figure, "", colours)
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    figure.update_layout(height=height, margin={"t": _ABOVE})
    return figure


def _add(figure: go.Figure, panel: Panel, colours: Palette, place: dict[str, Any]) -> None:
    values = numpy.array(panel.numbers, dtype=float)
    largest = float(numpy.nanmax(numpy.abs(values), initial=0.0)) or 1.0
    rows, columns = readable(list(panel.rows)), readable(list(panel.columns))
    texts = hover_texts(rows, columns, lambda row, column, i, j: f"{row}, {column}: {trimmed(values[i, j])}")
    look: dict[str, Any] = {"showscale": False, "hoverongaps": False, "xgap": 1, "ygap": 1}
    figure.add_trace(cells(values, (-largest, largest), colours.differences, texts, **look), **place)
    if len(columns) <= _PRINTED_UP_TO:
        add_numbers(figure, lambda number: trimmed(number, panel.digits), at=len(heatmaps(figure)) - 1, **place)
    figure.update_xaxes(**labelled_axis(columns, "", colours.muted, colours, vertical=False), **place)
    figure.update_yaxes(**labelled_axis(rows, "", colours.muted, colours, vertical=True), **place)
    if panel.line is not None:
        across, down = ("y", "x") if panel.upright else ("x", "y")
        corners = {f"{across}0": -0.5, f"{across}1": len(rows if panel.upright else columns) - 0.5}
        corners |= {f"{down}0": panel.line - 0.5, f"{down}1": panel.line + 0.5}
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2}, **corners, **place)


def trimmed(number: float, digits: int = 4) -> str:
    """Write a number without trailing zeros; nothing for NaN."""
    text = "" if math.isnan(number) else f"{number:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else with_minus(text)
