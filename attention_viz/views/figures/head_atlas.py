"""All heads of a trace in one picture: by a metric, by two, by how alike they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.likeness import head_distances
from attention_viz.analysis.metrics import METRICS, head_table
from attention_viz.errors import ShapeError
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.by_head import grid_of_heads
from attention_viz.views.figures.heatmap import arrange, colour_bar, number_axis, round_up
from attention_viz.views.style.theme import Palette, ThemeName, palette, ramp

if TYPE_CHECKING:
    import pandas

__all__ = ["head_grid", "head_map", "head_scatter", "written"]


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

    Args:
        trace: what was recorded.
        metric: a name in `METRICS`.
        stream: which attention; the only one there is, if none is named.
        chosen: layer and head to frame.
        table: from `head_table`, such as of several texts; by default that of the trace.
        theme: "light" or "dark".

    Raises:
        ShapeError: there is no such metric.
        TraceError: no such stream, or none named where there are several.
    """
    _check(metric)
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    values = table[metric].unstack("head").to_numpy()
    return grid_of_heads(
        values,
        [layer.label for layer in trace.layers[stream]],
        colours,
        title=f"{METRICS[metric].label}, by head",
        stops=ramp(colours.weight_low, colours.weight_high),
        full=round_up(float(numpy.nanmax(values, initial=0.0))),
        said=[[_told(table, layer, head) for head in range(values.shape[1])] for layer in range(len(values))],
        written=[["" if numpy.isnan(one) else written(one) for one in row] for row in values.tolist()],
        bar=colour_bar(METRICS[metric].unit),
        chosen=chosen,
    )


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

    Args and errors as of `head_grid`.
    """
    for metric in (across, up):
        _check(metric)
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    figure = _points(table, table[across].tolist(), table[up].tolist(), chosen, colours)
    arrange(figure, f"{METRICS[up].label} against {METRICS[across].label.lower()}", colours)
    figure.update_xaxes(title={"text": f"{METRICS[across].label}, {METRICS[across].unit}"}, **number_axis(colours))
    figure.update_yaxes(title={"text": f"{METRICS[up].label}, {METRICS[up].unit}"}, **number_axis(colours))
    return figure


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

    Args and errors as of `head_grid`, and besides:
        distances: from `head_distances`, where they are at hand already: for long texts they take a second.
    """
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    distances = head_distances(trace, stream) if distances is None else distances
    if distances.shape != (len(table), len(table)):
        raise ShapeError(
            f"distances of {tuple(distances.shape)} came; {len(table)} heads need ({len(table)}, {len(table)})"
        )
    places, kept = _flat(distances.numpy())
    figure = _points(table, places[:, 0].tolist(), places[:, 1].tolist(), chosen, colours)
    arrange(figure, f"Heads that look alike stand together ({kept:.0%} of the distances kept)", colours)
    hidden = {**number_axis(colours), "showticklabels": False}
    figure.update_xaxes(**hidden)
    figure.update_yaxes(**hidden, scaleanchor="x")
    return figure


def _flat(distances: Float[numpy.ndarray, "one other"]) -> tuple[Float[numpy.ndarray, "one 2"], float]:
    """Classical scaling: places whose distances come as near as two dimensions allow, and the share that is kept."""
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


def _points(
    table: "pandas.DataFrame",
    across: Sequence[float],
    up: Sequence[float],
    chosen: tuple[int, int] | None,
    colours: Palette,
) -> go.Figure:
    heads = [(int(layer), int(head)) for layer, head in table.index]
    last = max(layer for layer, _ in heads)
    stops = ramp(colours.weight_low, colours.weight_high)[2:]
    tones = [stops[round(layer / max(1, last) * (len(stops) - 1))] for layer, _ in heads]
    edges = [3 if head == chosen else 0.5 for head in heads]
    sizes = [15 if head == chosen else 10 for head in heads]
    return go.Figure(
        go.Scatter(
            x=across,
            y=up,
            customdata=heads,
            mode="markers",
            marker={"color": tones, "size": sizes, "line": {"color": colours.ink, "width": edges}},
            hovertext=[_told(table, *head) for head in heads],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )


def _told(table: "pandas.DataFrame", layer: int, head: int) -> str:
    """A head and all its metrics, with their spread where they are of several texts."""
    if (layer, head) not in table.index:
        return ""
    row = table.loc[(layer, head)]
    lines = [f"{metric.label}: {_with_spread(row, name)}" for name, metric in METRICS.items() if row[name] == row[name]]
    return "<br>".join([f"layer {layer}, head {head}", *lines])


def _with_spread(row: "pandas.Series", name: str) -> str:
    """A number of one text's, or the mean of several with its spread."""
    spread = f"{name}_spread"
    return f"{row[name]:.3f} ± {row[spread]:.3f}" if spread in row.index else f"{row[name]:.3f}"


def written(number: float) -> str:
    """A head's number as it stands in its cell."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"


def _check(metric: str) -> None:
    if metric not in METRICS:
        raise ShapeError(f"the metric {metric!r} was asked for; there are {', '.join(METRICS)}")
