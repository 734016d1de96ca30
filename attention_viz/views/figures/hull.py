"""Draw a head's output inside its values' hull."""

from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Float

from attention_viz.analysis.plane import corners
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, channels, palette
from attention_viz.views.style.wording import escaped, shortened, with_minus

__all__ = ["free_sides", "hull"]

_HEIGHT = 460
# Pixels across and up for the points; a name's letter, line and distance from its point, and half a point.
_PLOT, _LETTER, _LINE, _OFF, _HALF = (420, 310), 6.7, 15, 4, 5
# Where a name may be, the first choice first: to the left or right of its point, and below or above it.
_SIDES = [
    *[(0, 1), (0, -1), (1, 0), (-1, 0)],
    *[(1, 1), (-1, 1), (1, -1), (-1, -1)],
]
_ACROSS, _UP = {-1: "left", 0: "center", 1: "right"}, {-1: "bottom", 0: "middle", 1: "top"}


def hull(
    trace: Trace, layer: int, head: int, query: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw a head's values as points, the hull around them, and one query's output among them.

    A line joins each value to the output; its width shows the weight.

    Args:
        trace: the run; the head's values must have two numbers each, drawn across and up.
        layer: its number, the model's own.
        head: the head, from 0.
        query: the output's position, from 0.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing, or values don't have two numbers.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    one, queries = trace.attention(layer, stream).head(head), trace.query_tokens(stream).names
    if one.value.shape[-1] != 2:
        raise ShapeError(f"a hull needs values of two numbers; this head's have {one.value.shape[-1]}")
    trace.query_tokens(stream).require(query)
    row = one.rows([query])
    values, outputs = (tensor.detach().double().cpu().numpy() for tensor in (one.value, row.output))
    weights, output = row.weights[0].detach().double().cpu().tolist(), outputs[0].tolist()
    figure = go.Figure()
    _add_hull(figure, values, colours)
    for value, weight in zip(values.tolist(), weights, strict=True):
        line = {"color": colours.key, "width": 0.5 + 8 * weight}
        look: dict[str, Any] = {"line": line, "opacity": 0.2 + 0.6 * weight, "hoverinfo": "skip", "showlegend": False}
        figure.add_scatter(x=[value[0], output[0]], y=[value[1], output[1]], mode="lines", **look)
    label, edge = queries[query], {"color": colours.ink, "width": 1.5}
    figure.add_scatter(
        x=output[:1],
        y=output[1:],
        mode="markers",
        marker={"color": colours.query, "size": 14, "symbol": "diamond", "line": edge},
        hovertext=[f"output of {escaped(label)}: {_pair(output)}"],
        hovertemplate="%{hovertext}<extra></extra>",
        name=f"output of {escaped(shortened(label))}",
    )
    # Last, so that the names lie on top.
    _add_points(figure, values, weights, trace.key_tokens(stream).written, colours)
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours)
    grid = number_axis(colours)
    # As far up as across, so that near is near; and room for the words at the edge.
    figure.update_xaxes(title="first number of a value", range=_room(values[:, 0]), **grid)
    figure.update_yaxes(title="second number", scaleanchor="x", range=_room(values[:, 1]), **grid)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
    figure.update_layout(height=_HEIGHT, legend=legend)
    return figure


def _room(numbers: Float[numpy.ndarray, " key"]) -> list[float]:
    """Return the range plus a fifth beyond."""
    low, high = float(numbers.min()), float(numbers.max())
    beyond = 0.2 * (high - low) or 1.0
    return [low - beyond, high + beyond]


def _add_hull(figure: go.Figure, values: Float[numpy.ndarray, "key 2"], colours: Palette) -> None:
    around = corners(values)
    closed = numpy.concatenate([around, around[:1]])
    figure.add_scatter(
        x=closed[:, 0].tolist(),
        y=closed[:, 1].tolist(),
        mode="lines",
        fill="toself",
        fillcolor=f"rgba{(*channels(colours.value), 0.12)}",
        line={"color": colours.value, "dash": "dot", "width": 1.5},
        name="hull of the values",
        hoverinfo="skip",
    )


def _add_points(
    figure: go.Figure,
    values: Float[numpy.ndarray, "key 2"],
    weights: list[float],
    labels: tuple[str, ...],
    colours: Palette,
) -> None:
    here: dict[tuple[float, ...], dict[str, None]] = {}
    for value, label in zip(values.tolist(), labels, strict=True):
        here.setdefault(tuple(value), {})[label] = None
    # Popped, so that only the first of those in one place writes their names.
    written = [shortened(", ".join(here.pop(tuple(value), {}))) for value in values.tolist()]
    order = sorted(range(len(written)), key=lambda at: -weights[at])
    sides = free_sides(values, written, order)
    figure.add_scatter(
        x=values[:, 0].tolist(),
        y=values[:, 1].tolist(),
        mode="markers+text",
        marker={"color": colours.value, "size": 9},
        text=["" if side is None else escaped(names) for names, side in zip(written, sides, strict=True)],
        textposition=[f"{_UP[up]} {_ACROSS[across]}" for across, up in (side or _SIDES[0] for side in sides)],
        textfont={"family": MONOSPACE, "size": 11, "color": colours.ink},
        cliponaxis=False,
        hovertext=[
            f"value of {escaped(label)}: {_pair(value)}, weight {weight:.6f}"
            for label, value, weight in zip(labels, values.tolist(), weights, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        name="values",
    )


def free_sides(
    values: Float[numpy.ndarray, "key 2"], names: list[str], order: list[int]
) -> list[tuple[int, int] | None]:
    """Choose each name's side so that it covers no point and no other name; None if no side is free."""
    spans = [high - low for low, high in map(_room, values.T)]
    pixels = min(size / span for size, span in zip(_PLOT, spans, strict=True)) * values
    points = numpy.concatenate([pixels - _HALF, pixels + _HALF], axis=1)
    taken, sides = list[Float[numpy.ndarray, " 4"]](), list[tuple[int, int] | None]([None] * len(names))
    for at in order:
        # Points with the same values have one name.
        others = points[(pixels != pixels[at]).any(axis=1)]
        half = numpy.array([_LETTER * len(names[at]) / 2, _LINE / 2])
        for side in _SIDES if names[at] else ():
            middle = pixels[at] + numpy.array(side) * (half + _OFF)
            box = numpy.concatenate([middle - half, middle + half])
            if not any(_overlap(box, other) for other in (*taken, *others)):
                taken.append(box)
                sides[at] = side
                break
    return sides


def _overlap(one: Float[numpy.ndarray, " 4"], other: Float[numpy.ndarray, " 4"]) -> bool:
    """Return whether two boxes (left, bottom, right, top) share some space."""
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def _pair(numbers: list[float]) -> str:
    return with_minus(f"({numbers[0]:.6f}, {numbers[1]:.6f})")
