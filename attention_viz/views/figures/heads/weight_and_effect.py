"""What a head looks at against what it does: the heads of a layer as points."""

from collections.abc import Sequence

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette

__all__ = ["weight_and_effect"]

_HEIGHT = 380


def weight_and_effect(
    weights: Sequence[float], moved: Sequence[float], layer: int, *, theme: ThemeName = "light"
) -> go.Figure:
    """The heads of one layer: across how much they look at a word, up how far the output moves without them.

    Args:
        weights: a head's weight from one word to another, a number a head.
        moved: the share of its length by which the output moves when the head is silenced, a number a head.
        layer: which layer, from 0.
        theme: "light" or "dark".

    Raises:
        ShapeError: no heads, or not as many weights as effects.
    """
    if not weights or len(weights) != len(moved):
        raise ShapeError(f"a weight and an effect a head are needed; got {len(weights)} and {len(moved)}")
    colours = palette(theme)
    points = go.Scatter(
        x=list(weights),
        y=list(moved),
        mode="markers+text",
        marker={"size": 12, "color": colours.accent, "line": {"color": colours.ink, "width": 0.5}},
        text=[str(head) for head in range(len(weights))],
        textposition="top center",
        textfont={"size": 11, "color": colours.ink},
        hovertext=[f"layer {layer}, head {head}" for head in range(len(weights))],
        hovertemplate="%{hovertext}: weight %{x:.3f}, the output moves by %{y:.2%}<extra></extra>",
        cliponaxis=False,
    )
    figure = go.Figure([points])
    arrange(figure, f"The heads of layer {layer}, by number", colours)
    grid = number_axis(colours)
    figure.update_xaxes(title="weight from the one word to the other", rangemode="tozero", **grid)
    figure.update_yaxes(
        title={"text": "the output moves by", "standoff": 12}, tickformat=".1%", rangemode="tozero", **grid
    )
    figure.update_layout(height=_HEIGHT)
    return figure
