"""Cells that can be touched: a clear marker over each cell of a matrix, since a heatmap itself can't be clicked."""

from typing import Any

import plotly.graph_objects as go

__all__ = ["touchable"]

_CLEAR = {"opacity": 0}


def touchable(figure: go.Figure, queries: int, keys: int, size: float, *, by: str = "click") -> go.Figure:
    """The same figure with every cell to be clicked, or to be dragged over with others.

    Not both at once: while a drag selects, Streamlit leaves clicks alone.

    Args:
        figure: a matrix, queries down and keys across, its heatmap first.
        queries: how many rows.
        keys: how many columns.
        size: of a marker, in pixels: about that of a cell.
        by: "click" or "drag".
    """
    # The markers say what a cell holds: a click goes to whatever answers the pointer, and a heatmap can't take it.
    cells: Any = figure.data[0]
    said = [text for row in cells.hovertext for text in row]
    cells.update(hoverinfo="skip", hovertemplate=None)
    figure.add_scatter(
        x=list(range(keys)) * queries,
        y=[query for query in range(queries) for _ in range(keys)],
        mode="markers",
        marker={"size": size, "symbol": "square", "color": "rgba(0,0,0,0)"},
        # Otherwise Plotly pales whatever wasn't touched.
        selected={"marker": _CLEAR},
        unselected={"marker": _CLEAR},
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        name="cells",
    )
    figure.update_layout(dragmode="select" if by == "drag" else "pan", hovermode="closest")
    # Held in place: a hand that slips on a click must not move the matrix.
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure
