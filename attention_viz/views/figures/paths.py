"""Arcs between words: paths step by step and direct, and two heads that work together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import shortened, spread, token_names

__all__ = ["composition", "paths"]

_HEIGHT = 360
_POINTS = 40
# As many arcs as can be told apart.
_MOST_ARCS = 64
# As many words as find room beside each other.
_NAMED = 8
_RECURRENT, _DIRECT = 1.0, 0.0
_TWO_ROWS = 420
# The thinnest and the thickest of an arc, in pixels: its weight from 0 to 1.
_THIN, _THICK = 0.5, 6.0
# How near to the row of words an arc begins.
_GAP = 0.24


def paths(trace: Trace, start: int, end: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Draw two ways from one token to another: above through a state per word between, below by attention, in one step.

    Args:
        trace: the run; both ways show its tokens.
        start: the source word's position, from 0.
        end: the position of the word that needs it.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the stream is missing.
        ShapeError: the position is missing.
    """
    colours, tokens = palette(theme), trace.query_tokens(stream)
    for position in (start, end):
        tokens.require(position)
    figure = go.Figure()
    each = max(1, -(-abs(end - start) // _MOST_ARCS))
    step, hops = each if end >= start else -each, list[tuple[int, int, float, str]]()
    for at in range(start, end, step):
        hops.append((at, min(at + step, end) if step > 0 else max(at + step, end), _RECURRENT, colours.query))
    if start != end:
        hops.append((start, end, _DIRECT, colours.key))
    for first, last, height, colour in hops:
        rise = 0.14 + 0.3 * min(1.0, abs(last - first) / 4)
        _arc(figure, (first, last), height + 0.1, rise, colour, 2, 11, hoverinfo="skip")
    _words(figure, token_names(tokens), (start, end), colours)
    steps = abs(end - start)
    note = f"each arc of the first way is {each} steps" if each > 1 else ""
    arrange(figure, f"{steps} step{'s' * (steps != 1)} against {min(1, steps)}", colours, note=note)
    figure.update_xaxes(visible=False, range=[-0.7, len(tokens) - 0.3])
    figure.update_yaxes(visible=False, range=[-0.45, 1.95])
    figure.update_layout(height=_HEIGHT, showlegend=False)
    for height, label in ((_RECURRENT, "recurrent: one word after the other"), (_DIRECT, "attention: all at once")):
        figure.add_annotation(
            x=0,
            xref="paper",
            xanchor="left",
            y=height + 0.72,
            text=label,
            showarrow=False,
            font={"color": colours.muted},
        )
    return figure


def _arc(
    figure: go.Figure, ends: tuple[int, int], foot: float, rise: float, colour: str, width: float, tip: int, **more: Any
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Draw an arc with a tip; return its places across, and how far it rises from its foot."""
    start, end = ends
    turn = numpy.linspace(0, numpy.pi, _POINTS)
    across, up = (start + end) / 2 - (end - start) / 2 * numpy.cos(turn), rise * numpy.sin(turn)
    # Markers of several sizes are pale unless they have an opacity.
    marker = {"symbol": "arrow", "angleref": "previous", "size": [0] * (_POINTS - 1) + [tip], "color": colour}
    marker |= {"opacity": 1}
    look = {"mode": "lines+markers", "line": {"color": colour, "width": width}, "marker": marker, **more}
    figure.add_scatter(x=across.tolist(), y=(foot + up).tolist(), **look)
    return across, up


def _words(figure: go.Figure, names: list[str], ends: tuple[int, int], colours: Palette) -> None:
    # Side by side, also on a phone; the two ends always.
    named = {at for at in spread(len(names), _NAMED) if min(abs(at - end) for end in ends) > 1} | {*ends}
    named = named if len(names) > _NAMED else {*range(len(names))}
    for height in (_RECURRENT, _DIRECT):
        figure.add_scatter(
            x=list(range(len(names))),
            y=[height] * len(names),
            mode="markers+text",
            marker={
                "size": 9,
                "color": [colours.ink if at in ends else colours.background for at in range(len(names))],
                "line": {"color": colours.ink, "width": 1},
            },
            text=[shortened(name, 10) if at in named else "" for at, name in enumerate(names)],
            textposition="bottom center",
            textfont={"family": MONOSPACE, "size": 11, "color": colours.ink},
            hovertext=names,
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
        )


def composition(
    trace: Trace,
    writer: tuple[int, int],
    reader: tuple[int, int],
    query: int,
    key: int,
    over_training: Mapping[int, tuple[float, float]],
    *,
    marked: int,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a composition of two heads, and their weights over a training.

    Above the words is the later head's weight, below them the earlier head's weight from the same key.

    Args:
        trace: the run, of a decoder.
        writer: the earlier head, its layer and head; drawn is its weight from the key to the token before.
        reader: the later head, its layer and head; drawn is its weight from the query to the key.
        query: the query's position.
        key: the key's position, from 1.
        over_training: by step, both weights, the earlier head's first.
        marked: the trace's step.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer is missing.
        ShapeError: the head, step or position is missing, or the key has no token before it.
    """
    tokens, colours = trace.query_tokens(), palette(theme)
    tokens.require(query)
    tokens.require(key)
    if key < 1 or marked not in over_training:
        raise ShapeError(f"a token before position {key}, and both weights after {marked} steps, are required")
    figure = make_subplots(rows=2, cols=1, row_heights=[0.56, 0.44], vertical_spacing=0.1)
    looks = ((query, key, reader, 1, colours.accent), (key, key - 1, writer, -1, colours.key))
    names = token_names(tokens)
    for start, end, place, side, colour in looks:
        weight = float(trace.weights(*place)[start, end])
        phrase = f"layer {place[0]}, head {place[1]}: {names[start]} takes {weight:.3f} from {names[end]}"
        _look(figure, (start, end), side, weight, colour, phrase)
    _row_of_words(figure, names, (query, key, key - 1), colours)
    labels = [f"layer {layer}, head {head}" for layer, head in (writer, reader)]
    _curves(figure, over_training, labels, marked, colours)
    arrange(figure, "", colours)
    figure.update_layout(height=_TWO_ROWS, showlegend=False)
    figure.update_xaxes(visible=False, range=[-0.7, len(tokens) - 0.3], fixedrange=True, row=1, col=1)
    figure.update_yaxes(visible=False, range=[-1.25, 1.75], fixedrange=True, row=1, col=1)
    grid = {**number_axis(colours), "fixedrange": True}
    figure.update_xaxes(title={"text": "steps of training", "standoff": 6}, **grid, row=2, col=1)
    figure.update_yaxes(title={"text": "weight", "standoff": 6}, range=[-0.05, 1.08], **grid, row=2, col=1)
    return figure


def _look(figure: go.Figure, ends: tuple[int, int], side: int, weight: float, colour: str, phrase: str) -> None:
    rise, width = side * (0.4 + 0.5 * min(1.0, abs(ends[1] - ends[0]) / 4)), _THIN + (_THICK - _THIN) * weight
    hover = {"hovertext": phrase, "hovertemplate": "%{hovertext}<extra></extra>"}
    look: dict[str, Any] = {"opacity": 0.25 + 0.75 * weight, **hover, "row": 1, "col": 1}
    across, up = _arc(figure, ends, side * _GAP, rise, colour, width, 18, **look)
    figure.add_annotation(
        x=float(across[_POINTS // 2]),
        y=float(side * (_GAP + abs(up).max() + 0.08)),
        text=phrase,
        showarrow=False,
        yanchor="bottom" if side > 0 else "top",
        font={"color": colour, "size": 12},
        row=1,
        col=1,
    )


def _row_of_words(figure: go.Figure, names: Sequence[str], named: tuple[int, ...], colours: Palette) -> None:
    figure.add_scatter(
        x=list(range(len(names))),
        y=[0.0] * len(names),
        mode="text",
        text=[f"<b>{shortened(name, 10)}</b>" if at in named else shortened(name, 10) for at, name in enumerate(names)],
        textfont={
            "family": MONOSPACE,
            "size": 13,
            "color": [colours.ink if at in named else colours.muted for at in range(len(names))],
        },
        hovertext=[f"{name}, token {at}" for at, name in enumerate(names)],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
        row=1,
        col=1,
    )


def _curves(
    figure: go.Figure,
    over_training: Mapping[int, tuple[float, float]],
    labels: Sequence[str],
    marked: int,
    colours: Palette,
) -> None:
    steps = list(over_training)
    figure.add_shape(
        type="line",
        x0=marked,
        x1=marked,
        y0=0,
        y1=1.08,
        line={"color": colours.line},
        layer="below",
        xref="x2",
        yref="y2",
    )
    for which, (label, colour, dash) in enumerate(
        zip(labels, (colours.key, colours.accent), ("dot", "solid"), strict=True)
    ):
        weights = [over_training[step][which] for step in steps]
        figure.add_scatter(
            x=steps,
            y=weights,
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": dash},
            marker={
                "size": [12 if step == marked else 6 for step in steps],
                "color": [colours.background if step == marked else colour for step in steps],
                "line": {"color": colour, "width": 2},
            },
            hovertemplate=f"{label}, after %{{x}} steps: %{{y:.3f}}<extra></extra>",
            row=2,
            col=1,
        )
