"""What attention costs: measured times beside the formula, and one practice before and after."""

from collections.abc import Mapping

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.figures.heatmap import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["before_after", "cost"]

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


def before_after(before: float, after: float, unit: str, *, theme: ThemeName = "light") -> go.Figure:
    """Two bars: what something took before, and after.

    Args:
        before: not below 0.
        after: not below 0.
        unit: of both.
        theme: "light" or "dark".

    Raises:
        ShapeError: a number below 0.
    """
    if min(before, after) < 0:
        raise ShapeError(f"bars need numbers not below 0; got {before} and {after}")
    colours = palette(theme)
    written = [f"{one:,.0f}" if one >= 1000 else f"{one:.3g}" for one in (before, after)]
    bars = go.Bar(
        x=[before, after],
        y=["before", "after"],
        orientation="h",
        marker={"color": [colours.muted, colours.accent]},
        text=written,
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"%{{y}}: %{{text}} {escaped(unit)}<extra></extra>",
    )
    figure = go.Figure([bars])
    arrange(figure, f"Before and after, {escaped(unit)}", colours)
    figure.update_xaxes(title=escaped(unit), rangemode="tozero", range=[0, max(before, after, 1e-12) * 1.35])
    figure.update_xaxes(**number_axis(colours))
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(height=240)
    return figure
