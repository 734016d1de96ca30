"""Tokens with a number each, written beside bars."""

from collections.abc import Sequence

import plotly.graph_objects as go

from attention_viz.views.style.theme import MONOSPACE, Palette
from attention_viz.views.style.wording import readable, shortened

# The letters of a token.
_LONGEST = 18


def add_token_table(
    figure: go.Figure, names: Sequence[str], numbers: Sequence[str], row: int, colours: Palette
) -> None:
    """Write a token and its number per line into a row's first plot, whose x-axis goes from 0 to 1."""
    for place, side, texts in ((0.0, "right", names), (1.0, "left", numbers)):
        figure.add_scatter(
            x=[place] * len(texts),
            y=list(range(len(texts))),
            mode="text",
            text=list(texts),
            textposition=f"middle {side}",
            textfont={"family": MONOSPACE, "size": 12, "color": colours.ink},
            hoverinfo="skip",
            cliponaxis=False,
            row=row,
            col=1,
        )


def drawn_token(written: str, longest: int = _LONGEST) -> str:
    """Return a token for a figure, without markup or invisible signs."""
    return shortened(readable([written])[0], longest)
