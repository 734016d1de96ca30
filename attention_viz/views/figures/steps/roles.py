"""Show one head's query, key and value per token."""

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.trace.trace import Trace
from attention_viz.views.figures.steps.steps import steps
from attention_viz.views.style.axes import arrange, note_of
from attention_viz.views.style.captions import caption
from attention_viz.views.style.numbers import heatmaps
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["roles"]

_ROLES = {"query": "Query", "key": "Key", "value": "Value"}


def roles(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    notation: str = "rows",
    theme: ThemeName = "light",
) -> go.Figure:
    """The queries, keys and values of one head, each in its own colour, a row a token.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        stream: which stream; None for the only one there is.
        notation: one of `NOTATIONS`; with "columns" a token is a column, and the three stand below each other.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    stream, colours, upright = trace.stream(stream), palette(theme), notation == "columns"
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
        cells, *numbers = heatmaps(part)
        figure.add_trace({**cells.to_plotly_json(), "showscale": False}, row=row, col=column)
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
