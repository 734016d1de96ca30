"""Plot softmax sharpness by width, scaled and unscaled."""

import math
from statistics import fmean

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.steps.head import OpenHead, open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views.style.theme import SANS, Palette, ThemeName, palette

__all__ = ["saturation"]

# Measure, then with what scale; dashes keep the two measures apart without colour.
_LINES = (("largest", "largest weight", "solid"), ("gradient", "size of the gradient", "dot"))
_SCALES = (("d_k", "scaled by 1/√d_k"), ("none", "no scale"))


def saturation(
    *traces: Trace,
    layer: int = 0,
    head: int = 0,
    stream: str | None = None,
    chosen: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """The softmax's largest weight and its gradient against d_k, means over the rows, a width a point.

    Args:
        traces: the same text through modules of different d_k; of several with the same, the mean is drawn.
        layer: its number, the model's own.
        head: which head, from 0.
        stream: which stream; None for the only one there is.
        chosen: a d_k to mark.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head, or no trace.
    """
    if not traces:
        raise ShapeError("saturation needs at least one trace; none was given")
    colours, figure = palette(theme), go.Figure()
    for scale, label in _SCALES:
        opened = [open_head(trace, layer, head, stream, scale=scale) for trace in traces]
        _add_lines(figure, opened, label, colours.accent if scale == "d_k" else colours.bad)
    if chosen is not None:
        _mark(figure, chosen, colours)
    _arrange(figure, sorted({trace.attention(layer, stream).query.shape[-1] for trace in traces}), colours)
    return figure


def _add_lines(figure: go.Figure, opened: list[OpenHead], label: str, colour: str) -> None:
    widths = sorted({one.d_k for one in opened})
    rows = [[row_statistics(one.weights) for one in opened if one.d_k == width] for width in widths]
    for name, measure, dash in _LINES:
        figure.add_scatter(
            x=widths,
            y=[fmean(float(getattr(one, name).mean()) for one in same) for same in rows],
            name=f"{measure}, {label}",
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            hovertemplate=f"d_k %{{x}}: {measure} %{{y:.4f}}, {label}<extra></extra>",
        )


def _mark(figure: go.Figure, d_k: int, colours: Palette) -> None:
    figure.add_vline(x=d_k, line={"color": colours.ink, "width": 1})
    # On a logarithmic axis Plotly places annotations by exponent.
    figure.add_annotation(x=math.log10(d_k), y=1.02, text=f"d_k = {d_k}", showarrow=False, yanchor="bottom")


def _arrange(figure: go.Figure, widths: list[int], colours: Palette) -> None:
    figure.update_layout(
        font={"family": SANS, "color": colours.ink, "size": 12},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        height=340,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    )
    figure.update_xaxes(
        type="log",
        title={"text": "d_k: width of a query and a key", "standoff": 8},
        gridcolor=colours.line,
        tickvals=widths,
        automargin=True,
    )
    figure.update_yaxes(range=[0, 1.02], title="mean over the rows", gridcolor=colours.line, automargin=True)
