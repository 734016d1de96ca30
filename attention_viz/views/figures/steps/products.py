"""Show one score's query, key, products and sum below its matrix."""

import math
from typing import Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps.matrix import family
from attention_viz.views.figures.steps.steps import steps
from attention_viz.views.style.axes import arrange, labelled_axis, note_of
from attention_viz.views.style.captions import caption
from attention_viz.views.style.numbers import add_numbers, heatmaps
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, shortened, with_minus

__all__ = ["products"]

_PRINTED_UP_TO = 12
# Pixels: a row of each part, and what stands around them.
_ROW, _AROUND = 26, 220


def products(
    trace: Trace,
    layer: int,
    head: int,
    query: int,
    key: int,
    stream: str | None = None,
    *,
    notation: str = "rows",
    theme: ThemeName = "light",
) -> go.Figure:
    """All scores of one head, and below them one opened: query × key, dimension by dimension, and the sum.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        query: the position that looks, from 0.
        key: the position looked at, from 0.
        stream: which stream; None for the only one there is.
        notation: one of `NOTATIONS`, for the matrix; "keys down" turns it.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head or position.
    """
    stream, colours = trace.stream(stream), palette(theme)
    opened = open_cell(open_head(trace, layer, head, stream), "scores", query, key)
    matrix = steps(trace, layer, head, "scores", stream, notation=notation, cell=(query, key), theme=theme)
    rows = trace.attention(layer, stream).shape[-1 if notation == "keys down" else -2]
    figure = make_subplots(rows=2, row_heights=[rows + 1, 5], vertical_spacing=min(0.3, 124 / _height(rows)))
    cells, *over = heatmaps(matrix)
    figure.add_trace({**cells.to_plotly_json(), "showscale": False}, row=1, col=1)
    figure.update_layout({part: matrix.layout[part].to_plotly_json() for part in ("xaxis", "yaxis")})
    layout: Any = matrix.layout
    figure.update_layout(shapes=[outline.to_plotly_json() for outline in layout.shapes])
    names = [
        f"{letter} of {escaped(shortened(tokens.said[at], 12))}"
        for letter, tokens, at in (("q", trace.query_tokens(stream), query), ("k", trace.key_tokens(stream), key))
    ]
    _add_products(figure, opened, [*names, "q × k"], colours)
    for numbers in over:
        figure.add_trace(numbers.to_plotly_json(), row=1, col=1)
    arrange(figure, f"Scores · {escaped(caption(trace, layer, head, stream))}", colours, note=note_of(matrix))
    figure.update_layout(height=_height(rows))
    return figure


def _height(rows: int) -> int:
    return min(640, _AROUND + _ROW * (rows + 3))


def _add_products(figure: go.Figure, opened: Arithmetic, names: list[str], colours: Palette) -> None:
    queries, keys = ([term.factors[side][1] for term in opened.terms] for side in (0, 1))
    lines = (
        (queries, family("query", colours)),
        (keys, family("key", colours)),
        ([*(term.product for term in opened.terms), opened.sum], family("", colours)),
    )
    columns = [*(str(c) for c in range(len(opened.terms))), "sum"]
    for place, (numbers, stops) in enumerate(lines):
        drawn = numpy.full((len(lines), len(columns)), math.nan)
        drawn[place, : len(numbers)] = numbers
        largest = max(map(abs, numbers)) or 1.0
        figure.add_trace(
            go.Heatmap(
                z=drawn,
                zmin=-largest,
                zmax=largest,
                colorscale=colour_scale(stops),
                showscale=False,
                hoverongaps=False,
                hovertext=[
                    [f"{names[place]}, {_named(c)}: {_written(n, 6)}" for c, n in zip(columns, row, strict=True)]
                    for row in drawn
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                xgap=1,
                ygap=1,
            ),
            row=2,
            col=1,
        )
    if len(opened.terms) <= _PRINTED_UP_TO:
        for place in range(len(lines)):
            add_numbers(figure, _short, at=1 + place, row=2, col=1)
    figure.update_xaxes(**labelled_axis(columns, "dimension", colours.muted, colours, vertical=False), row=2, col=1)
    figure.update_yaxes(**labelled_axis(names, "", colours.muted, colours, vertical=True), row=2, col=1)


def _named(column: str) -> str:
    return column if column == "sum" else f"dimension {column}"


def _short(number: float) -> str:
    return _written(number, 2)


def _written(number: float, digits: int) -> str:
    return "" if math.isnan(number) else with_minus(f"{number:.{digits}f}")
