"""Several steps of one head: its queries, keys and values, and one score opened below its matrix."""

import math
from typing import Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps import family, steps
from attention_viz.views.style.axes import arrange, labelled_axis, note_of
from attention_viz.views.style.blocks import cells
from attention_viz.views.style.captions import caption
from attention_viz.views.style.marks import add_numbers, heatmaps
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, shortened, with_minus

__all__ = ["products", "roles"]

_ROLES = {"query": "Query", "key": "Key", "value": "Value"}
_PRINTED_UP_TO = 12
# Pixels: a row of each part, and what stands around them.
_ROW, _AROUND = 26, 220


def roles(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    notation: str = "rows",
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the queries, keys and values of one head, each in its own colour, one row per token.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        stream: the stream; None for the only one.
        notation: one of `NOTATIONS`; with "columns" a token is a column, and the three are below each other.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head is missing.
    """
    stream, colours, upright = trace.attention_stream(stream), palette(theme), notation == "columns"
    parts = [steps(trace, layer, head, name, stream, notation=notation, theme=theme) for name in _ROLES]
    call = trace.attention(layer, stream)
    sizes = [int(made.shape[-1]) for made in (call.query, call.key, call.value)]
    layout: dict[str, Any] = {"rows": 3, "row_heights": sizes} if upright else {"cols": 3, "column_widths": sizes}
    room: dict[str, Any] = {"vertical_spacing": 0.1} if upright else {"horizontal_spacing": 0.03}
    figure = make_subplots(**layout, **room, subplot_titles=list(_ROLES.values()))
    axes: dict[str, Any] = {}
    over = list[tuple[Any, int, int]]()
    shared = trace.query_tokens(stream).labels == trace.key_tokens(stream).labels
    for place, part in enumerate(parts, start=1):
        row, column = (place, 1) if upright else (1, place)
        whole, *numbers = heatmaps(part)
        figure.add_trace({**whole.to_plotly_json(), "showscale": False}, row=row, col=column)
        over += [(one, row, column) for one in numbers]
        # Where the same tokens stand along all three, they are named at the first, or below the last.
        unnamed = ("x" if place < 3 else "") if upright else ("y" if place > 1 else "")
        for axis in "xy":
            settings = {"title": None, "showticklabels": not (shared and axis == unnamed)}
            axes[f"{axis}axis{place}"] = {**part.layout[f"{axis}axis"].to_plotly_json(), **settings}
    for numbers, row, column in over:
        figure.add_trace(numbers.to_plotly_json(), row=row, col=column)
    note = next(filter(None, map(note_of, parts)), "")
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours, note=note)
    for title, name in zip(figure.layout.annotations, _ROLES, strict=True):
        title.font = {"color": getattr(colours, name), "size": 12}
    tokens = max(len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
    height = 120 + 30 * sum(sizes) if upright else min(620, 150 + 26 * tokens)
    figure.update_layout(**axes, height=height, margin={"t": 92 if note else 76})
    return figure


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
    """Draw all scores of one head, and below them one score in parts: query × key by dimension, and the sum.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        query: the query's position, from 0.
        key: the key's position, from 0.
        stream: the stream; None for the only one.
        notation: one of `NOTATIONS`, for the matrix; "keys down" turns it.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    opened = open_cell(open_head(trace, layer, head, stream), "scores", query, key)
    matrix = steps(trace, layer, head, "scores", stream, notation=notation, cell=(query, key), theme=theme)
    rows = trace.attention(layer, stream).shape[-1 if notation == "keys down" else -2]
    figure = make_subplots(rows=2, row_heights=[rows + 1, 5], vertical_spacing=min(0.3, 124 / _height(rows)))
    whole, *over = heatmaps(matrix)
    figure.add_trace({**whole.to_plotly_json(), "showscale": False}, row=1, col=1)
    figure.update_layout({part: matrix.layout[part].to_plotly_json() for part in ("xaxis", "yaxis")})
    layout: Any = matrix.layout
    figure.update_layout(shapes=[outline.to_plotly_json() for outline in layout.shapes])
    names = [
        f"{letter} of {escaped(shortened(tokens.names[at], 12))}"
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
        texts = [
            [f"{names[place]}, {_named(c)}: {_written(n, 6)}" for c, n in zip(columns, row, strict=True)]
            for row in drawn
        ]
        look: dict[str, Any] = {"showscale": False, "hoverongaps": False, "xgap": 1, "ygap": 1}
        figure.add_trace(cells(drawn, (-largest, largest), stops, texts, **look), row=2, col=1)
    if len(opened.terms) <= _PRINTED_UP_TO:
        for place in range(len(lines)):
            add_numbers(figure, lambda number: _written(number, 2), at=1 + place, row=2, col=1)
    figure.update_xaxes(**labelled_axis(columns, "dimension", colours.muted, colours, vertical=False), row=2, col=1)
    figure.update_yaxes(**labelled_axis(names, "", colours.muted, colours, vertical=True), row=2, col=1)


def _named(column: str) -> str:
    return column if column == "sum" else f"dimension {column}"


def _written(number: float, digits: int) -> str:
    return "" if math.isnan(number) else with_minus(f"{number:.{digits}f}")
