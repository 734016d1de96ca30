"""Colour every head by a metric."""

from typing import TYPE_CHECKING

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import METRICS
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.grid_of_heads import framed, grid_of_heads
from attention_viz.views.figures.heads.points import check_metric, metrics_text
from attention_viz.views.style.scale import colour_bar, round_up
from attention_viz.views.style.theme import ThemeName, palette

if TYPE_CHECKING:
    import pandas

__all__ = ["head_grid", "written"]


def head_grid(
    trace: Trace,
    metric: str = "entropy",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    table: "pandas.DataFrame | None" = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Layers down, heads across, coloured by a metric.

    Where there are many more layers than heads, layers stand across and heads down.

    Args:
        trace: what was recorded.
        metric: a name in `METRICS`.
        stream: which attention; the only one there is, if none is named.
        chosen: layer and head to frame.
        table: from `head_table`, such as of several texts; by default that of the trace.
        theme: "light" or "dark".

    Raises:
        ShapeError: there is no such metric, or the table is of other layers than the trace's.
        TraceError: no such stream, or none named where there are several.
    """
    check_metric(metric)
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    values, numbers = table[metric].unstack("head").to_numpy(), trace.layer_numbers(stream)
    if tuple(table.index.unique("layer")) != numbers:
        raise ShapeError(f"a table of other layers came than those of the {stream}: {trace.kept[stream]}")
    return grid_of_heads(
        values,
        [layer.label for layer in trace.layers[stream]],
        colours,
        title=f"{METRICS[metric].label}, by head",
        stops=colours.weights,
        full=round_up(float(numpy.nanmax(values, initial=0.0))),
        said=[[metrics_text(table, layer, head) for head in range(values.shape[1])] for layer in numbers],
        written=written,
        bar=colour_bar(METRICS[metric].unit),
        chosen=framed(chosen, numbers),
    )


def written(number: float) -> str:
    """Write a head's number for its cell."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"
