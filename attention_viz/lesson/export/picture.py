"""A lesson's image and figure on its page: as high as there is room, without a title, with places to press."""

import copy
import html
from collections.abc import Sequence
from typing import Any

from plotly.graph_objects import Figure

from attention_viz.lesson.lesson import Ask, Spot
from attention_viz.lesson.scene import Scene
from attention_viz.views.figures.seen import png_data

__all__ = ["asked_image", "fitted", "has_few_words", "with_spots"]

# The height of a figure's title, and the room left above it for a legend or the names of its parts.
_TITLE, _ABOVE = 30, 30
# A figure's height on the first screen, in pixels; one that names many words may be taller.
_LEFT = 440
# The most words that such a figure names.
_FEW = 10
# In a matrix of more columns, a number that is nearly 0 isn't written: Plotly makes all as small as "<0.01" needs.
_WIDE = 10
# The size of a clickable spot in a figure, in pixels.
_SPOT = 20


def asked_image(ask: Ask) -> str:
    """Return the image that a question is about, as a URL that holds it; "" for none."""
    picture = None if ask.seen is None else ask.seen.seen.picture
    return "" if picture is None else png_data(picture.numpy())


def has_few_words(scene: Scene) -> bool:
    """Return whether a figure that names each word fits the first screen."""
    return len(scene.words) <= _FEW


def fitted(figure: Figure, *, few: bool) -> Figure:
    """Return a copy without a title, since the text beside it explains it; of `few` words, no higher than a screen."""
    figure = copy.deepcopy(figure)
    layout: Any = figure.layout
    parts: list[Any] = list(figure.data)
    legend = any(one.showlegend for one in parts) and (layout.legend.y or 0) >= 1
    figure.update_layout(
        title_text="", margin_t=max(layout.margin.t - _TITLE, _ABOVE if legend or layout.annotations else 8)
    )
    height = layout.height or _LEFT
    if few and "xaxis2" not in layout:  # a figure below another needs its room
        figure.update_layout(height=min(_LEFT, height))
    for matrix in [one for one in parts if one.type == "heatmap" and one.texttemplate]:
        matrix.text = _without_least(matrix.text)
    return figure


def _without_least(written: Any) -> list[list[str]]:
    """Blank a wide matrix's numbers that round to 0; on hover they are there."""
    rows = [list(row) for row in written]
    wide = max(map(len, rows), default=0) > _WIDE
    return [[" " if wide and html.unescape(str(one))[:1] in ("<", ">") else one for one in row] for row in rows]


def with_spots(figure: Figure, spots: Sequence[Spot]) -> None:
    """Add invisible numbered points, which Plotly reports clicks on."""
    # Beside others, a trace without a name would be listed as "trace 0".
    found: list[Any] = list(figure.select_traces())
    for part in [one for one in found if not one.name]:
        part.showlegend = False
    unseen = {"marker": {"opacity": 0}}
    # A word drawn at a spot would catch the click instead.
    axes = {spot.axis for spot in spots}
    # A matrix has no mode.
    for words in [one for one in found if getattr(one, "mode", None) == "markers+text"]:
        if (words.xaxis or "x")[1:] in axes:
            words.update(hoverinfo="skip", hovertemplate=None)
    for axis in dict.fromkeys(spot.axis for spot in spots):
        some = [(number, spot) for number, spot in enumerate(spots) if spot.axis == axis]
        figure.add_scatter(
            x=[spot.x for _, spot in some],
            y=[spot.y for _, spot in some],
            customdata=[(number, 0) for number, _ in some],
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            mode="markers",
            marker={"size": _SPOT, "opacity": 0},
            selected=unseen,
            unselected=unseen,
            hovertext=[spot.name for _, spot in some],
            hoverinfo="text" if any(spot.name for _, spot in some) else "none",
            showlegend=False,
        )
