"""Every head as a point, by two metrics."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import METRICS
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heads.points import check_metric, heads_as_points
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.theme import ThemeName, palette

if TYPE_CHECKING:
    import pandas

__all__ = ["head_scatter"]


def head_scatter(
    trace: Trace,
    across: str = "previous",
    up: str = "entropy",
    stream: str | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    table: "pandas.DataFrame | None" = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Every head as a point, one metric across and another up; later layers are darker.

    Args:
        trace: what was recorded.
        across: a name in `METRICS`.
        up: a name in `METRICS`.
        stream: which attention; the only one there is, if none is named.
        chosen: layer and head to mark.
        table: from `head_table`, such as of several texts; by default that of the trace.
        theme: "light" or "dark".

    Raises:
        ShapeError: there is no such metric.
        TraceError: no such stream, or none named where there are several.
    """
    for metric in (across, up):
        check_metric(metric)
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    figure = heads_as_points(table, table[across].tolist(), table[up].tolist(), chosen, colours)
    arrange(figure, f"{METRICS[up].label} against {METRICS[across].label.lower()}", colours)
    figure.update_xaxes(title={"text": f"{METRICS[across].label}, {METRICS[across].unit}"}, **number_axis(colours))
    figure.update_yaxes(title={"text": f"{METRICS[up].label}, {METRICS[up].unit}"}, **number_axis(colours))
    return figure
