"""Plot a head's metric over training steps."""

from collections.abc import Mapping

import numpy
import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["training"]

_HEIGHT = 320


def training(
    measured: Mapping[int, float],
    accuracy: Mapping[int, float],
    label: str,
    *,
    marked: tuple[int, ...] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """A metric of one head at each moment of a training, beside how often the model was right, both from 0 to 1.

    Args:
        measured: by step, the metric, such as a column of `head_table` at one head; NaN where a text has no answer.
        accuracy: by step, the share of right answers.
        label: what the metric is called.
        marked: the steps that are looked at.
        theme: "light" or "dark".

    Raises:
        ShapeError: there is no step, or the two tell of different steps.
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
    _mark(figure, {step: measured[step] for step in marked if step in measured}, colours)
    _frame(figure, float(numpy.nanmax([1.0, *measured.values(), *accuracy.values()])), colours)
    return figure


def _mark(figure: go.Figure, measured: Mapping[int, float], colours: Palette) -> None:
    figure.add_scatter(
        x=list(measured),
        y=list(measured.values()),
        mode="markers",
        marker={"size": 13, "color": colours.background, "line": {"color": colours.accent, "width": 3}},
        hoverinfo="skip",
        showlegend=False,
    )
    for step in measured:
        figure.add_vline(x=step, line={"color": colours.line, "width": 2}, layer="below")


def _frame(figure: go.Figure, largest: float, colours: Palette) -> None:
    grid = {**number_axis(colours), "fixedrange": True}
    figure.update_xaxes(title={"text": "steps of training", "standoff": 8}, **grid)
    figure.update_yaxes(range=[-0.03, largest * 1.04], **grid)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(height=_HEIGHT, legend=legend, margin={"l": 8, "r": 8, "t": 44, "b": 8})
