"""Measured numbers as curves and bars: a practice's saving, times, training, and softmax sharpness."""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.steps.head import OpenHead, open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis, paint
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["before_after", "cost", "saturation", "training"]
_HEIGHT = 340
_LOW = 320
# Measure, then with what scale; dashes keep the two measures apart without colour.
_LINES = (("largest", "largest weight", "solid"), ("gradient", "size of the gradient", "dot"))
_SCALES = (("d_k", "scaled by 1/√d_k"), ("none", "no scale"))


def before_after(before: float, after: float, unit: str, *, theme: ThemeName = "light") -> go.Figure:
    """Draw two bars: an amount before, and after.

    Args:
        before: not below 0.
        after: not below 0.
        unit: of both.
        theme: "light" or "dark".

    Raises:
        ShapeError: a number below 0.
    """
    if min(before, after) < 0:
        raise ShapeError(f"bars need numbers from 0; got {before} and {after}")
    colours = palette(theme)
    written = [f"{one:,.0f}" if one >= 1000 else f"{one:.3g}" for one in (before, after)]
    bars = go.Bar(
        x=[before, after],
        y=["before", "after"],
        orientation="h",
        marker={"color": [colours.muted, colours.accent]},
        text=written,
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"%{{y}}: %{{text}} {escaped(unit)}<extra></extra>",
    )
    figure = go.Figure([bars])
    arrange(figure, f"Before and after, {escaped(unit)}", colours)
    figure.update_xaxes(title=escaped(unit), rangemode="tozero", range=[0, max(before, after, 1e-12) * 1.35])
    figure.update_xaxes(**number_axis(colours))
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(height=240)
    return figure


def cost(measured: Mapping[int, float], *, chosen: int | None = None, theme: ThemeName = "light") -> go.Figure:
    """Draw measured times against the number of tokens, both axes logarithmic, beside the line that n² predicts.

    The line goes through the longest text's time, where n² outweighs everything else.

    Args:
        measured: by number of tokens, seconds.
        chosen: a number of tokens to mark.
        theme: "light" or "dark".

    Raises:
        ShapeError: fewer than two were measured, or a time isn't above 0.
    """
    if len(measured) < 2 or min(measured.values()) <= 0:
        raise ShapeError(
            f"a curve needs two or more times above 0; got {len(measured)} of {sorted(measured.values())[:3]}"
        )
    colours, lengths = palette(theme), sorted(measured)
    longest = lengths[-1]
    predicted = [1000 * measured[longest] * (length / longest) ** 2 for length in lengths]
    figure = go.Figure()
    figure.add_scatter(
        x=lengths, y=predicted, mode="lines", name="predicted by n²", line={"color": colours.muted, "dash": "dot"}
    )
    figure.add_scatter(
        x=lengths,
        y=[1000 * measured[length] for length in lengths],
        mode="markers+lines",
        name="measured here",
        line={"color": colours.accent},
        marker={"size": [15 if length == chosen else 9 for length in lengths], "color": colours.accent},
        hovertemplate="%{x:,} tokens: %{y:.3f} ms<extra></extra>",
    )
    arrange(figure, "Time for one head", colours)
    grid = number_axis(colours)
    figure.update_xaxes(type="log", title="tokens", tickvals=lengths, ticktext=[f"{one:,}" for one in lengths], **grid)
    figure.update_yaxes(type="log", title="milliseconds", dtick=1, **grid)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"}
    figure.update_layout(height=_HEIGHT, legend=legend)
    return figure


def training(
    measured: Mapping[int, float],
    accuracy: Mapping[int, float],
    label: str,
    *,
    marked: tuple[int, ...] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw one head's metric and the model's accuracy over a training, both from 0 to 1.

    Args:
        measured: by step, the metric, such as a column of `head_table` at one head; NaN if a text has none.
        accuracy: by step, the share of right answers.
        label: the metric's name.
        marked: the steps to mark.
        theme: "light" or "dark".

    Raises:
        ShapeError: steps are missing, or the two have different ones.
    """
    if not measured or list(measured) != list(accuracy):
        raise ShapeError(
            f"a curve needs one or more steps, the same for both; got {list(measured)} and {list(accuracy)}"
        )
    colours, name = palette(theme), escaped(label)
    figure = go.Figure()
    lines = (
        (measured, name, colours.accent, "solid", "circle"),
        (accuracy, "right answers", colours.muted, "dot", "diamond"),
    )
    for numbers, called, colour, dash, symbol in lines:
        figure.add_scatter(
            x=list(numbers),
            y=list(numbers.values()),
            name=called,
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 7, "symbol": symbol},
            hovertemplate=f"after %{{x}} steps: {called} %{{y:.4f}}<extra></extra>",
        )
    arrange(figure, "", colours)
    shown = {step: measured[step] for step in marked if step in measured}
    dot = {"size": 13, "color": colours.background, "line": {"color": colours.accent, "width": 3}}
    look: dict[str, Any] = {"mode": "markers", "marker": dot, "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=list(shown), y=list(shown.values()), **look)
    for step in shown:
        figure.add_vline(x=step, line={"color": colours.line, "width": 2}, layer="below")
    largest = float(numpy.nanmax([1.0, *measured.values(), *accuracy.values()]))
    grid = {**number_axis(colours), "fixedrange": True}
    figure.update_xaxes(title={"text": "steps of training", "standoff": 8}, **grid)
    figure.update_yaxes(range=[-0.03, largest * 1.04], **grid)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(height=_LOW, legend=legend, margin={"l": 8, "r": 8, "t": 44, "b": 8})
    return figure


def saturation(
    *traces: Trace,
    layer: int = 0,
    head: int = 0,
    stream: str | None = None,
    chosen: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the softmax's largest weight and its gradient against d_k: means over the rows, one point per width.

    Args:
        traces: the same text through modules of different d_k; several with the same d_k are averaged.
        layer: its number, the model's own.
        head: the head, from 0.
        stream: the stream; None for the only one.
        chosen: a d_k to mark.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head is missing, or `traces` is empty.
    """
    if not traces:
        raise ShapeError("saturation needs at least one trace; got none")
    colours, figure = palette(theme), go.Figure()
    for scale, label in _SCALES:
        opened = [open_head(trace, layer, head, stream, scale=scale) for trace in traces]
        _add_lines(figure, opened, label, colours.accent if scale == "d_k" else colours.bad)
    if chosen is not None:
        _mark_width(figure, chosen, colours)
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


def _mark_width(figure: go.Figure, d_k: int, colours: Palette) -> None:
    figure.add_vline(x=d_k, line={"color": colours.ink, "width": 1})
    # On a logarithmic axis Plotly places annotations by exponent.
    figure.add_annotation(x=math.log10(d_k), y=1.02, text=f"d_k = {d_k}", showarrow=False, yanchor="bottom")


def _arrange(figure: go.Figure, widths: list[int], colours: Palette) -> None:
    legend = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
    paint(figure, colours, height=_HEIGHT, margin={"l": 8, "r": 8, "t": 30, "b": 8}, legend=legend)
    title = {"text": "d_k: width of a query and a key", "standoff": 8}
    figure.update_xaxes(type="log", title=title, gridcolor=colours.line, tickvals=widths, automargin=True)
    figure.update_yaxes(range=[0, 1.02], title="mean over the rows", gridcolor=colours.line, automargin=True)
