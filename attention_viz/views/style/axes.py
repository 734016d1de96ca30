"""Set axes of tokens or numbers, and margins."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from attention_viz.views.style.theme import MONOSPACE, SANS, Palette
from attention_viz.views.style.wording import shortened, spread

# What a figure says in `layout.meta` whose panels stand below each other where a page is narrow.
FOLDS = "panels fold"

# How many tokens are named down the side of a matrix, and how many across.
_NAMED_UP_TO = 30
_NAMED_ACROSS = 18
# How high a named row has to be, and what stands above and below the rows, in pixels.
_ROW, _AROUND = 11, 130
# Beside each other where the picture is 220 pixels wide, as on a phone.
_LETTERS_ACROSS = 38


# Labels with a title and its colour, or all that Plotly knows of an axis.
NamedAxis = tuple[list[str], str, str]
Axis = NamedAxis | dict[str, Any]


def labelled_axis(labels: list[str], title: str, colour: str, colours: Palette, *, vertical: bool) -> dict[str, Any]:
    """Label one side with tokens that fit, titled in its role's colour."""
    # Across, slanted labels need more room than rows do; the same tokens stand down the side.
    positions = spread(len(labels), _NAMED_UP_TO if vertical else _NAMED_ACROSS)
    return {
        "title": {"text": title, "font": {"color": colour, "size": 13}, "standoff": 8},
        "tickmode": "array",
        "tickvals": positions,
        "ticktext": [shortened(labels[position]) for position in positions],
        "tickangle": 0 if vertical or _fit_across(labels) else -60,
        "tickfont": {"family": MONOSPACE, "size": 11, "color": colours.ink},
        "range": [len(labels) - 0.5, -0.5] if vertical else [-0.5, len(labels) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
    }


def number_axis(colours: Palette) -> dict[str, Any]:
    """Make a number axis with grid lines behind and room for text."""
    return {"gridcolor": colours.line, "zerolinecolor": colours.line, "automargin": True}


def _fit_across(labels: list[str]) -> bool:
    """Return whether labels fit on a phone, a letter's width apart."""
    return sum(len(shortened(label)) + 2 for label in labels) <= _LETTERS_ACROSS


def paint(figure: go.Figure, colours: Palette, **layout: Any) -> None:
    """Set a figure's letters and page colours, and what else is given."""
    font = {"family": SANS, "color": colours.ink, "size": 12}
    figure.update_layout(font=font, paper_bgcolor=colours.background, plot_bgcolor=colours.background, **layout)


def arrange(figure: go.Figure, title: str, colours: Palette, note: str = "") -> None:
    """Return a picture's title, page colours and margins."""
    # Each part whole: `update_layout` takes ten times as long, since it may be given a part of a part.
    layout: Any = figure.layout
    layout.title = {"text": f"{title}<br>{note}" if note else title, "font": {"size": 13}, "x": 0.01}
    layout.font = {"family": SANS, "color": colours.ink, "size": 12}
    layout.paper_bgcolor = layout.plot_bgcolor = colours.background
    layout.height = 560
    layout.margin = {"l": 8, "r": 8, "t": 62 if note else 44, "b": 8}
    layout.legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}


def label_axes(figure: go.Figure, colours: Palette, across: Axis, down: Axis) -> None:
    """Set a matrix's two axes at once; faster than changing them."""
    layout: Any = figure.layout
    layout.xaxis, layout.yaxis = (
        axis if isinstance(axis, dict) else labelled_axis(*axis, colours, vertical=vertical)
        for axis, vertical in ((across, False), (down, True))
    )


def pair_axes(
    queries: list[str], keys: list[str], colours: Palette, *, mixes: bool = False
) -> tuple[NamedAxis, NamedAxis]:
    """Return the axes of a matrix of weights: keys across, queries down; `mixes` if its layer has no softmax."""
    if mixes:
        return (keys, "key: carried token", colours.key), (queries, "query: receiving token", colours.query)
    return (keys, "key: attended token", colours.key), (queries, "query: attending token", colours.query)


def lower(figure: go.Figure, height: int) -> go.Figure:
    """Reduce a figure's height and thin its vertical labels."""
    figure.update_layout(height=height)
    for axis in figure.select_yaxes():
        if axis.ticktext is not None:
            kept = spread(len(axis.ticktext), max(1, (height - _AROUND) // _ROW))
            axis.tickvals, axis.ticktext = [axis.tickvals[at] for at in kept], [axis.ticktext[at] for at in kept]
    return figure


def begin(axis: Any, labels: Sequence[str], count: int) -> None:
    """Limit an axis to the first positions and thin its labels."""
    kept = spread(count, _NAMED_ACROSS // 2)
    axis.update(range=[-0.5, count - 0.5], tickvals=kept, ticktext=[shortened(labels[at]) for at in kept])


def note_of(figure: go.Figure) -> str:
    """Return the line under a title; empty for none."""
    title: Any = figure.layout["title"]
    return str(title.text or "").partition("<br>")[2]
