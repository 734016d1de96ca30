"""Heads that look alike, near each other."""

from typing import TYPE_CHECKING

import numpy
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.likeness import head_distances
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.points import heads_as_points
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette

if TYPE_CHECKING:
    import pandas

__all__ = ["head_map"]


def head_map(
    trace: Trace,
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    table: "pandas.DataFrame | None" = None,
    distances: Float[Tensor, "one other"] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Every head as a point; heads that look alike stand close together.

    Distances are √ of the mean Jensen–Shannon divergence of the rows of two heads, brought to two dimensions by
    classical scaling (Torgerson 1952), which keeps as much of them as two dimensions can; the axes mean nothing by
    themselves.

    Args:
        trace: what was recorded.
        stream: which attention; the only one there is, if none is named.
        chosen: layer and head to mark.
        table: from `head_table`, such as of several texts; by default that of the trace.
        distances: from `head_distances`, where they are at hand already: for long texts they take a second.
        theme: "light" or "dark".

    Raises:
        ShapeError: distances of another number of heads.
        TraceError: no such stream, or none named where there are several.
    """
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    distances = head_distances(trace, stream) if distances is None else distances
    if distances.shape != (len(table), len(table)):
        raise ShapeError(
            f"distances of {tuple(distances.shape)} came; {len(table)} heads need ({len(table)}, {len(table)})"
        )
    places, share = _flat(distances.numpy())
    figure = heads_as_points(table, places[:, 0].tolist(), places[:, 1].tolist(), chosen, colours)
    arrange(figure, f"Heads that look alike stand together ({share:.0%} of the distances kept)", colours)
    hidden = {**number_axis(colours), "showticklabels": False}
    figure.update_xaxes(**hidden)
    figure.update_yaxes(**hidden, scaleanchor="x")
    return figure


def _flat(distances: Float[numpy.ndarray, "one other"]) -> tuple[Float[numpy.ndarray, "one 2"], float]:
    """Return classical scaling's places in two dimensions and the kept share."""
    centred = -0.5 * distances**2
    centred = centred - centred.mean(0) - centred.mean(1)[:, None] + centred.mean()
    sizes, directions = numpy.linalg.eigh(centred)
    sizes, directions = sizes[::-1].clip(0), directions[:, ::-1]
    places = numpy.zeros((len(distances), 2))
    count = min(2, len(distances))
    places[:, :count] = directions[:, :count] * numpy.sqrt(sizes[:count])
    # An eigenvector's sign is by chance: its largest entry is made positive.
    for column in places.T:
        column *= numpy.sign(column[numpy.abs(column).argmax()]) or 1
    return places, float(sizes[:2].sum() / sizes.sum()) if sizes.sum() > 0 else 1.0
