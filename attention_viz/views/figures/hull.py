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

__all__ = ["hull"]


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
    figure.update_layout(height=460, legend=legend)
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
    written = [", ".join(here.pop(tuple(value), {})) for value in values.tolist()]
    figure.add_scatter(
        x=values[:, 0].tolist(),
        y=values[:, 1].tolist(),
        mode="markers+text",
        marker={"color": colours.value, "size": 9},
        text=[escaped(shortened(names)) for names in written],
        textposition="top center",
        textfont={"family": MONOSPACE, "size": 11, "color": colours.ink},
        cliponaxis=False,
        hovertext=[
            f"value of {escaped(label)}: {_pair(value)}, weight {weight:.6f}"
            for label, value, weight in zip(labels, values.tolist(), weights, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        name="values",
    )


def _pair(numbers: list[float]) -> str:
    return with_minus(f"({numbers[0]:.6f}, {numbers[1]:.6f})")
