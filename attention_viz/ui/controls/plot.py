"""Plotly figures and their clicks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from attention_viz.ui import widgets
from attention_viz.views.style.description import alternative_text

_CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False}
# How many numbers a point that answers a click has.
_NUMBERS = 2


def show_picture(
    figure: go.Figure, key: str, description: str, *, tools: bool = False, theme: Literal["streamlit"] | None = None
) -> None:
    """Show a figure, in the page's theme unless it has ours; its alternative text names its largest numbers, too."""
    config: dict[str, Any] = {"displaylogo": False} if tools else _CONFIG
    st.plotly_chart(figure, theme=theme, key=key, config=config, alt=alternative_text(figure, description))


def show_to_click(figure: go.Figure, key: str, description: str, on_click: Callable[[tuple[int, int]], None]) -> None:
    """Show a figure whose points have clickable `customdata` (two integers)."""
    figure.update_layout(hovermode="closest", clickmode="event+select", dragmode=False)
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=_CONFIG,
        alt=alternative_text(figure, description),
        on_select=lambda: _take_click(key, on_click),
        selection_mode="points",
    )


def add_targets(
    figure: go.Figure, cells: Sequence[tuple[int, int]], *, turned: bool = False, size: int = 14, named: bool = True
) -> None:
    """Add invisible points, because Plotly reports no clicks on heatmap cells."""
    down, across = [row for row, _ in cells], [column for _, column in cells]
    unseen = {"marker": {"opacity": 0}}
    figure.add_scatter(
        x=down if turned else across,
        y=across if turned else down,
        customdata=list(cells),
        mode="markers",
        marker={"size": size, "opacity": 0},
        selected=unseen,
        unselected=unseen,
        hoverinfo="none" if named else "skip",
        showlegend=False,
    )


def _take_click(key: str, on_click: Callable[[tuple[int, int]], None]) -> None:
    # Other parts of a figure, such as lines with their own numbers, ignore clicks.
    numbers = widgets.clicked_point(key)
    if numbers is not None and len(numbers) == _NUMBERS:
        on_click((int(numbers[0]), int(numbers[1])))
