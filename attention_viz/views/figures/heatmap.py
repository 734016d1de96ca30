"""One head as a matrix: queries down, keys across."""

import math
from typing import Any

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool, Float

from attention_viz.trace.trace import Trace
from attention_viz.views.style.hatching import segments
from attention_viz.views.style.theme import MONOSPACE, SANS, Palette, ThemeName, colour_scale, palette, ramp
from attention_viz.views.style.wording import caption, escaped, readable, shortened, spread

__all__ = [
    "add_hatch",
    "arrange",
    "blocked_cells",
    "colour_bar",
    "full_colour",
    "heatmap",
    "labelled_axis",
    "number_axis",
    "round_up",
]

# Matrices up to this size have their numbers printed in the cells, and up to the second all their tokens named.
_PRINTED_UP_TO = 14
_NAMED_UP_TO = 30
_NAMED_ACROSS = 18
# Beside each other where the picture is 220 pixels wide, as on a phone.
_LETTERS_ACROSS = 38
# Above this many tokens hardly a weight comes near 1, and a scale to 1 would leave the picture blank.
_SCALE_TO_ONE_UP_TO = 48
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10)


def heatmap(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    names: bool = True,
    theme: ThemeName = "light",
) -> go.Figure:
    """The weights of one head, queries down and keys across, 0 in the colour of the page.

    The deepest colour stands for 1, or in long texts for the largest weight: the colour bar says which.

    Args:
        trace: what was recorded.
        layer: which layer, from 0.
        head: which head, from 0.
        stream: which stream; None for the only one there is.
        names: whether hovering over a cell names its two tokens. Without, it tells their positions, and the figure of
            a long text is a tenth as large.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    stream = trace.stream(stream)
    colours = palette(theme)
    weights = trace.weights(layer, head, stream).detach().float().cpu().numpy()
    blocked = blocked_cells(trace, layer, head, stream)
    queries = readable(trace.query_tokens(stream).labels)
    keys = readable(trace.key_tokens(stream).labels)
    cells = _cells(weights, blocked, queries, keys, colours) if names else _nameless(weights, blocked, colours)
    figure = go.Figure([cells])
    add_hatch(figure, blocked, colours)
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours)
    figure.update_xaxes(**labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=False))
    figure.update_yaxes(**labelled_axis(queries, "query: who is looking", colours.query, colours, vertical=True))
    return figure


def blocked_cells(trace: Trace, layer: int, head: int, stream: str) -> Bool[numpy.ndarray, "query key"]:
    """True where a query may not look at a key."""
    one = trace.attention(layer, stream).head(head)
    if one.allowed is None:
        return numpy.zeros(one.shape, dtype=bool)
    return ~numpy.broadcast_to(one.allowed.cpu().numpy(), one.shape)


def colour_bar(title: str) -> dict[str, Any]:
    """What a colour stands for; its numbers stand below their lines, so that the first is clear of the title."""
    return {
        "title": {"text": title, "font": {"size": 12}},
        "tickformat": ".3~g",
        "ticklabelposition": "outside bottom",
        "thickness": 10,
        "outlinewidth": 0,
    }


def full_colour(weights: Float[numpy.ndarray, "query key"]) -> float:
    """The weight that gets the deepest colour: 1, or about the largest there is in a matrix of many tokens."""
    largest = float(weights.max(initial=0.0))
    if max(weights.shape) <= _SCALE_TO_ONE_UP_TO or largest == 0:
        return 1.0
    return round_up(largest)


def round_up(largest: float) -> float:
    """The next number whose quarters, which stand at a colour bar, are short; 1 for 0."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(digits * power for digits in _ROUND if digits * power >= largest * (1 - 1e-6))


def _ticks(full: float) -> list[float]:
    return [full * quarter / 4 for quarter in range(5)]


def _cells(
    weights: Float[numpy.ndarray, "query key"],
    blocked: Bool[numpy.ndarray, "query key"],
    queries: list[str],
    keys: list[str],
    colours: Palette,
) -> go.Heatmap:
    said = numpy.where(blocked, "blocked", numpy.vectorize("{:.6f}".format, otypes=[object])(weights))
    names = [[f"{query} looks at {key}: {said[i, j]}" for j, key in enumerate(keys)] for i, query in enumerate(queries)]
    full = full_colour(weights)
    printed = max(weights.shape) <= _PRINTED_UP_TO
    return go.Heatmap(
        z=weights,
        zmin=0,
        zmax=full,
        colorscale=colour_scale(ramp(colours.weight_low, colours.weight_high)),
        hovertext=names,
        hovertemplate="%{hovertext}<extra></extra>",
        # A blocked cell is 0 and not about 0.
        text=numpy.where(blocked, "0", numpy.vectorize("{:.3f}".format, otypes=[object])(weights)),
        texttemplate="%{text}" if printed else None,
        xgap=1 if printed else 0,
        ygap=1 if printed else 0,
        colorbar={**colour_bar("weight"), "tickvals": _ticks(full)},
    )


def _nameless(
    weights: Float[numpy.ndarray, "query key"], blocked: Bool[numpy.ndarray, "query key"], colours: Palette
) -> go.Heatmap:
    """The cells without a text each; blocked ones answer to nothing."""
    full = full_colour(weights)
    return go.Heatmap(
        z=numpy.where(blocked, numpy.float32("nan"), weights),
        zmin=0,
        zmax=full,
        colorscale=colour_scale(ramp(colours.weight_low, colours.weight_high)),
        hoverongaps=False,
        hovertemplate="position %{y} looks at position %{x}: %{z:.6f}<extra></extra>",
        colorbar={**colour_bar("weight"), "tickvals": _ticks(full)},
    )


def add_hatch(
    figure: go.Figure, blocked: Bool[numpy.ndarray, "query key"], colours: Palette, *, key: bool = True
) -> None:
    """Hatch the blocked cells, if there are any, and say in the legend what that means.

    All lines are one trace, lifted off between them: a trace a line would be a hundred times slower.

    Args:
        figure: a matrix, its cells' centres at whole numbers.
        blocked: its cells that a query may not look at.
        colours: of the theme.
        key: whether the legend says it.
    """
    if not blocked.any():
        return
    lines = segments(blocked)
    common: dict[str, Any] = {"name": "blocked: may not look there", "hoverinfo": "skip"}
    figure.add_scatter(
        x=[x for start, end in lines for x in (start[0], end[0], None)],
        y=[y for start, end in lines for y in (start[1], end[1], None)],
        mode="lines",
        line={"color": colours.blocked, "width": 1},
        showlegend=False,
        **common,
    )
    if key:
        # In a legend a line lies flat, and a mark slants as on the cells.
        marker = {"symbol": "line-ne", "size": 12, "line": {"color": colours.blocked, "width": 1.5}}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, showlegend=True, **common)


def labelled_axis(labels: list[str], title: str, colour: str, colours: Palette, *, vertical: bool) -> dict[str, Any]:
    """Tokens along one side of a matrix, as many as find room, with a title in the colour of its role."""
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
    """An axis with numbers on it: lines that stay behind what is drawn, and room for what is written."""
    return {"gridcolor": colours.line, "zerolinecolor": colours.line, "automargin": True}


def _fit_across(labels: list[str]) -> bool:
    """Whether the labels find room beside each other even on a phone; two of them stay a letter's width apart."""
    return sum(len(shortened(label)) + 2 for label in labels) <= _LETTERS_ACROSS


def arrange(figure: go.Figure, title: str, colours: Palette) -> None:
    """Title, page colours and room around a picture."""
    figure.update_layout(
        title={"text": title, "font": {"size": 13}, "x": 0.01},
        font={"family": SANS, "color": colours.ink, "size": 12},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        height=560,
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
    )
