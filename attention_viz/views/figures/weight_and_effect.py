"""Plot a layer's heads by weight and effect."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import readable, shortened

__all__ = ["weight_and_effect"]

_HEIGHT = 380
# Of the line of words: letters that fit beside each other on a phone, the longest word, and pixels a line.
_LETTERS, _LONGEST, _LINE = 44, 12, 20
# Pixels of the points' field on a phone, from a point to its number (right, up), and enough room around a number.
_FIELD = (260, 260)
_SIDES = {"top center": (0, 14), "middle right": (13, 0), "bottom center": (0, -14), "middle left": (-13, 0)}
_ENOUGH = 13.0


def weight_and_effect(
    weights: Sequence[float],
    moved: Sequence[float],
    layer: int,
    *,
    words: Sequence[str] = (),
    pair: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a layer's heads: across, their weight from one word to another; up, how far the output moves without them.

    Args:
        weights: each head's weight from one word to another.
        moved: the share of its length by which the output moves if the head is ablated, one per head.
        layer: its number, the model's own.
        words: the text's words, drawn above the heads.
        pair: the indices of the query word and the key word, from 0, to colour.
        theme: "light" or "dark".

    Raises:
        ShapeError: no heads, different numbers of weights and effects, or a pair that isn't among the words.
    """
    if not weights or len(weights) != len(moved):
        raise ShapeError(f"each head needs a weight and an effect; got {len(weights)} and {len(moved)}")
    if pair is not None and not all(0 <= place < len(words) for place in pair):
        raise ShapeError(f"a pair must be two of {len(words)} words; got {pair}")
    colours = palette(theme)
    points = go.Scatter(
        x=list(weights),
        y=list(moved),
        mode="markers+text",
        marker={"size": 12, "color": colours.accent, "line": {"color": colours.ink, "width": 0.5}},
        text=[str(head) for head in range(len(weights))],
        textposition=_free_sides(weights, moved),
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
    figure.update_layout(height=_HEIGHT, showlegend=False)
    if words:
        _add_words(figure, readable(words), pair, colours)
    return figure


def _free_sides(weights: Sequence[float], moved: Sequence[float]) -> list[str]:
    """Return each number's side: the first with room, else the one farthest from points and earlier numbers."""
    wide, high = (size / (max(line) or 1) for size, line in zip(_FIELD, (weights, moved), strict=True))
    points = [(wide * weight, high * move) for weight, move in zip(weights, moved, strict=True)]
    sides, numbers = list[str](), list[tuple[float, float]]()
    for at, (x, y) in enumerate(points):
        others = [*points[:at], *points[at + 1 :], *numbers]
        spots = {side: (x + across, y + up) for side, (across, up) in _SIDES.items()}
        room = {side: min((math.dist(spot, one) for one in others), default=_ENOUGH) for side, spot in spots.items()}
        sides.append(max(room, key=lambda side: min(_ENOUGH, room[side])))
        numbers.append(spots[sides[-1]])
    return sides


def _add_words(figure: go.Figure, names: Sequence[str], pair: tuple[int, int] | None, colours: Palette) -> None:
    looking, looked_at = pair or (None, None)
    inks = {looked_at: colours.key, looking: colours.query}
    short = [shortened(name, _LONGEST) for name in names]
    places = _in_lines(short)
    lines = 1 - min(line for _, line in places)
    figure.add_scatter(
        x=[across for across, _ in places],
        y=[line for _, line in places],
        xaxis="x2",
        yaxis="y2",
        mode="text",
        text=[f"<b>{name}</b>" if at in inks else name for at, name in enumerate(short)],
        textfont={"family": MONOSPACE, "size": 12, "color": [inks.get(at, colours.ink) for at in range(len(names))]},
        hoverinfo="skip",
        name="words",
    )
    room = lines * _LINE
    height = _HEIGHT + room
    figure.update_layout(
        height=height,
        yaxis_domain=[0, 1 - 1.4 * room / height],
        xaxis2={"range": [0, 1], "visible": False, "fixedrange": True, "anchor": "y2"},
        yaxis2={
            "range": [0.5 - lines, 0.5],
            "visible": False,
            "fixedrange": True,
            "domain": [1 - room / height, 1],
            "anchor": "x2",
        },
    )


def _in_lines(names: Sequence[str]) -> list[tuple[float, int]]:
    """Return each word's middle, 0 to 1, and line, 0, −1, …."""
    found, column, line = list[tuple[float, int]](), 0, 0
    for name in names:
        if column and column + len(name) > _LETTERS:
            column, line = 0, line - 1
        found.append(((column + len(name) / 2) / _LETTERS, line))
        column += len(name) + 2
    return found
