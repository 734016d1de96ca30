"""Show a practice's saving as two bars, before and after."""

import plotly.graph_objects as go

from attention_viz.errors import ShapeError
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped

__all__ = ["before_after"]


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
