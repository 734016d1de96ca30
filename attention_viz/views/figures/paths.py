"""Show paths between words, step by step and direct."""

import numpy
import plotly.graph_objects as go

from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import readable, shortened, spread

__all__ = ["paths"]

_HEIGHT = 360
_POINTS = 40
# As many arcs as can be told apart.
_MOST_ARCS = 64
# As many words as find room beside each other.
_NAMED = 8
_RECURRENT, _DIRECT = 1.0, 0.0


def paths(trace: Trace, start: int, end: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """How one token reaches another: above through a state for each word between, below by attention, in one step.

    Args:
        trace: what was recorded; its tokens stand along both ways.
        start: the position of the word that something is known of, from 0.
        end: the position of the word that wants to know it.
        stream: which stream; None for the only one there is.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such stream.
        ShapeError: there is no such position.
    """
    colours, tokens = palette(theme), trace.query_tokens(stream)
    for position in (start, end):
        tokens.require(position)
    figure = go.Figure()
    each = max(1, -(-abs(end - start) // _MOST_ARCS))
    step = each if end >= start else -each
    for at in range(start, end, step):
        _arc(figure, at, min(at + step, end) if step > 0 else max(at + step, end), _RECURRENT, colours.query)
    if start != end:
        _arc(figure, start, end, _DIRECT, colours.key)
    _words(figure, readable(tokens.written), (start, end), colours)
    steps = abs(end - start)
    note = f"each arc of the first way stands for {each} steps" if each > 1 else ""
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


def _arc(figure: go.Figure, start: int, end: int, height: float, colour: str) -> None:
    turn = numpy.linspace(0, numpy.pi, _POINTS)
    across = (start + end) / 2 - (end - start) / 2 * numpy.cos(turn)
    rise = 0.14 + 0.3 * min(1.0, abs(end - start) / 4)
    figure.add_scatter(
        x=across.tolist(),
        y=(height + 0.1 + rise * numpy.sin(turn)).tolist(),
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"symbol": "arrow", "angleref": "previous", "size": [0] * (_POINTS - 1) + [11], "color": colour},
        hoverinfo="skip",
    )


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
