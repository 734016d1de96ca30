"""Two composing heads: both weights there, and since which step."""

from collections.abc import Mapping, Sequence

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import readable, shortened

__all__ = ["composition"]

_HEIGHT = 420
_POINTS = 40
# The thinnest and the thickest of an arc, in pixels: its weight from 0 to 1.
_THIN, _THICK = 0.5, 6.0
# How near to the row of words an arc begins.
_GAP = 0.24


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
    """Above the words where a head looks, below them where an earlier head looked from there; and both over a training.

    Args:
        trace: what was recorded, of a decoder.
        writer: the earlier head, its layer and head: drawn is what it takes, at the key, from the token before.
        reader: the later head, its layer and head: drawn is what it takes, at the query, from the key.
        query: the position that looks.
        key: the position that is looked at, from 1.
        over_training: by step, both weights, the earlier head's first.
        marked: the step that the trace is of.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer.
        ShapeError: there is no such head, step or position, or nothing stands before the key.
    """
    tokens, colours = trace.query_tokens(), palette(theme)
    tokens.require(query)
    tokens.require(key)
    if key < 1 or marked not in over_training:
        raise ShapeError(f"a token before position {key}, and both weights after {marked} steps, are needed")
    figure = make_subplots(rows=2, cols=1, row_heights=[0.56, 0.44], vertical_spacing=0.1)
    looks = (
        (query, key, reader, 1, colours.accent),
        (key, key - 1, writer, -1, colours.key),
    )
    names = readable(tokens.written)
    for start, end, place, side, colour in looks:
        weight = float(trace.weights(*place)[start, end])
        phrase = f"layer {place[0]}, head {place[1]}: {names[start]} takes {weight:.3f} from {names[end]}"
        _arc(figure, (start, end), side, weight, colour, phrase)
    _words(figure, names, (query, key, key - 1), colours)
    labels = [f"layer {layer}, head {head}" for layer, head in (writer, reader)]
    _curves(figure, over_training, labels, marked, colours)
    arrange(figure, "", colours)
    figure.update_layout(height=_HEIGHT, showlegend=False)
    figure.update_xaxes(visible=False, range=[-0.7, len(tokens) - 0.3], fixedrange=True, row=1, col=1)
    figure.update_yaxes(visible=False, range=[-1.25, 1.75], fixedrange=True, row=1, col=1)
    grid = {**number_axis(colours), "fixedrange": True}
    figure.update_xaxes(title={"text": "steps of training", "standoff": 6}, **grid, row=2, col=1)
    figure.update_yaxes(title={"text": "weight", "standoff": 6}, range=[-0.05, 1.08], **grid, row=2, col=1)
    return figure


def _arc(figure: go.Figure, ends: tuple[int, int], side: int, weight: float, colour: str, phrase: str) -> None:
    start, end = ends
    turn = numpy.linspace(0, numpy.pi, _POINTS)
    across = (start + end) / 2 - (end - start) / 2 * numpy.cos(turn)
    rise = (0.4 + 0.5 * min(1.0, abs(end - start) / 4)) * numpy.sin(turn)
    figure.add_scatter(
        x=across.tolist(),
        y=(side * (_GAP + rise)).tolist(),
        mode="lines+markers",
        line={"color": colour, "width": _THIN + (_THICK - _THIN) * weight},
        marker={"symbol": "arrow", "angleref": "previous", "size": [0] * (_POINTS - 1) + [18], "color": colour},
        opacity=0.25 + 0.75 * weight,
        hovertext=phrase,
        hovertemplate="%{hovertext}<extra></extra>",
        row=1,
        col=1,
    )
    figure.add_annotation(
        x=float(across[_POINTS // 2]),
        y=float(side * (_GAP + rise.max() + 0.08)),
        text=phrase,
        showarrow=False,
        yanchor="bottom" if side > 0 else "top",
        font={"color": colour, "size": 12},
        row=1,
        col=1,
    )


def _words(figure: go.Figure, names: Sequence[str], named: tuple[int, ...], colours: Palette) -> None:
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
