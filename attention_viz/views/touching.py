"""Cells that can be touched: a clear marker over each cell of a matrix, since a heatmap itself can't be clicked."""

import plotly.graph_objects as go

__all__ = ["touchable"]

_CLEAR = {"opacity": 0}


def touchable(figure: go.Figure, queries: int, keys: int, size: float) -> go.Figure:
    """The same figure with every cell to be clicked, or to be dragged over with others.

    Args:
        figure: a matrix, queries down and keys across.
        queries: how many rows.
        keys: how many columns.
        size: of a marker, in pixels: about that of a cell.
    """
    figure.add_scatter(
        x=list(range(keys)) * queries,
        y=[query for query in range(queries) for _ in range(keys)],
        mode="markers",
        marker={"size": size, "symbol": "square", "color": "rgba(0,0,0,0)"},
        # Otherwise Plotly pales whatever wasn't touched.
        selected={"marker": _CLEAR},
        unselected={"marker": _CLEAR},
        # The heatmap below says what the cell holds.
        hoverinfo="none",
        showlegend=False,
        name="cells",
    )
    figure.update_layout(dragmode="select", hovermode="closest")
    return figure
