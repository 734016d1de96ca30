"""What attention costs: measured times beside the formula."""

from collections.abc import Mapping

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette

__all__ = ["cost"]

_HEIGHT = 340


def cost(measured: Mapping[int, float], *, chosen: int | None = None, theme: ThemeName = "light") -> go.Figure:
    """Measured times against the number of tokens, both axes logarithmic, beside the line that n² predicts.

    The line goes through the longest text's time, where n² outweighs everything else.

    Args:
        measured: by number of tokens, seconds.
        chosen: a number of tokens to mark.
        theme: "light" or "dark".

    Raises:
        ShapeError: fewer than two were measured, or a time isn't above 0.
    """
    if len(measured) < 2 or min(measured.values()) <= 0:
        raise ShapeError(
            f"two or more times above 0 are needed; got {len(measured)} of {sorted(measured.values())[:3]}"
        )
    colours, lengths = palette(theme), sorted(measured)
    longest = lengths[-1]
    predicted = [1000 * measured[longest] * (length / longest) ** 2 for length in lengths]
    figure = go.Figure()
    figure.add_scatter(
        x=lengths, y=predicted, mode="lines", name="what n² predicts", line={"color": colours.muted, "dash": "dot"}
    )
    figure.add_scatter(
        x=lengths,
        y=[1000 * measured[length] for length in lengths],
        mode="markers+lines",
        name="measured here",
        line={"color": colours.accent},
        marker={"size": [15 if length == chosen else 9 for length in lengths], "color": colours.accent},
        hovertemplate="%{x:,} tokens: %{y:.3f} ms<extra></extra>",
    )
    arrange(figure, "Time for one head", colours)
    grid = number_axis(colours)
    figure.update_xaxes(type="log", title="tokens", tickvals=lengths, ticktext=[f"{one:,}" for one in lengths], **grid)
    figure.update_yaxes(type="log", title="milliseconds", dtick=1, **grid)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"}
    figure.update_layout(height=_HEIGHT, legend=legend)
    return figure
