"""Draw a number per head: layers down, turned if many."""

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from attention_viz.views.style.axes import arrange, label_axes, labelled_axis
from attention_viz.views.style.numbers import add_numbers
from attention_viz.views.style.theme import Palette, colour_scale
from attention_viz.views.style.wording import escaped

__all__ = ["framed", "grid_of_heads", "is_turned"]

# Up to this many heads and layers, each cell's number stands in it.
_PRINTED_UP_TO = 16


def grid_of_heads(
    values: Float[ndarray, "layer head"],
    layers: Sequence[str],
    colours: Palette,
    *,
    title: str,
    stops: Sequence[str],
    full: float,
    said: Sequence[Sequence[str]],
    written: Callable[[float], str],
    bar: dict[str, Any],
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Colour each head by its number, layers down; see `is_turned`.

    Args:
        stops: the colours from 0 to `full`.
    """
    turned = is_turned(*values.shape)
    cells = go.Heatmap(
        z=values.T if turned else values,
        zmin=0,
        zmax=full,
        colorscale=colour_scale(stops),
        hovertext=list(zip(*said, strict=True)) if turned else said,
        hovertemplate="%{hovertext}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar=bar,
    )
    figure = go.Figure([cells])
    if max(values.shape) <= _PRINTED_UP_TO:
        add_numbers(figure, written)
    arrange(figure, title, colours)
    named = {
        "head": [str(head) for head in range(values.shape[1])],
        "layer": [escaped(layer) for layer in layers],
    }
    across, down = ("layer", "head") if turned else ("head", "layer")
    label_axes(
        figure,
        labelled_axis(named[across], across, colours.ink, colours, vertical=False),
        labelled_axis(named[down], down, colours.ink, colours, vertical=True),
    )
    if chosen is not None:
        row, column = reversed(chosen) if turned else chosen
        edges = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        figure.add_shape(type="rect", line={"color": colours.ink, "width": 2}, **edges)
    return figure


def is_turned(layers: int, heads: int) -> bool:
    """Return whether layers run across: with many, rows would be strips."""
    return layers > _PRINTED_UP_TO and layers > 2 * heads


def framed(chosen: tuple[int, int] | None, layers: Sequence[int]) -> tuple[int, int] | None:
    """Return a head's row and column; None if its layer is missing."""
    return None if chosen is None or chosen[0] not in layers else (layers.index(chosen[0]), chosen[1])
