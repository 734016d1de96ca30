"""Frame and name padding rows and columns."""

import plotly.graph_objects as go

from attention_viz.trace.tokens import Tokens
from attention_viz.views.style.theme import ThemeName, palette

__all__ = ["mark_padding"]


def mark_padding(figure: go.Figure, tokens: Tokens, theme: ThemeName = "light") -> go.Figure:
    """Frame a matrix's padding, if any."""
    colours = palette(theme)
    count = len(tokens)
    for first, after in _runs(tokens.padding):
        start, stop, end = first - 0.5, after - 0.5, count - 0.5
        for corners in ((start, -0.5, stop, end), (-0.5, start, end, stop)):
            x0, y0, x1, y1 = corners
            frame = {"color": colours.muted, "width": 1.5, "dash": "dash"}
            figure.add_shape(type="rect", x0=x0, y0=y0, x1=x1, y1=y1, line=frame)
        figure.add_annotation(
            x=(first + after - 1) / 2,
            y=-0.5,
            yshift=8,
            text="padding",
            showarrow=False,
            font={"size": 11, "color": colours.muted},
        )
    return figure


def _runs(padding: tuple[bool, ...]) -> list[tuple[int, int]]:
    """Return padding's starts and ends (exclusive)."""
    edges = [position for position in range(len(padding) + 1) if _at(padding, position) != _at(padding, position - 1)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _at(padding: tuple[bool, ...], position: int) -> bool:
    return 0 <= position < len(padding) and padding[position]
