"""Share heads as points and their metrics' text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.metrics import METRICS
from attention_viz.errors import ShapeError
from attention_viz.views.style.theme import Palette

if TYPE_CHECKING:
    import pandas

__all__ = ["check_metric", "heads_as_points", "metrics_text"]

# At most so many heads are named, which lie this many standard deviations from the median at least.
_NAMED, _APART = 10, 2.0


def heads_as_points(
    table: "pandas.DataFrame",
    across: Sequence[float],
    up: Sequence[float],
    chosen: tuple[int, int] | None,
    colours: Palette,
) -> go.Figure:
    """Draw heads as points, later layers darker; name the chosen and outlying ones."""
    heads = [(int(layer), int(head)) for layer, head in table.index]
    last = max(layer for layer, _ in heads)
    stops = colours.weights[3:]
    tones = [stops[round(layer / max(1, last) * (len(stops) - 1))] for layer, _ in heads]
    edges = [3 if head == chosen else 0.5 for head in heads]
    sizes = [15 if head == chosen else 10 for head in heads]
    return go.Figure(
        go.Scatter(
            x=across,
            y=up,
            customdata=heads,
            mode="markers+text",
            text=_names(heads, across, up, chosen),
            textposition="top center",
            textfont={"size": 11, "color": colours.ink},
            cliponaxis=False,
            marker={"color": tones, "size": sizes, "line": {"color": colours.ink, "width": edges}},
            hovertext=[metrics_text(table, *head) for head in heads],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )


def _names(
    heads: Sequence[tuple[int, int]], across: Sequence[float], up: Sequence[float], chosen: tuple[int, int] | None
) -> list[str]:
    points = numpy.array([across, up], dtype=float).T
    known = ~numpy.isnan(points).any(axis=1)
    far = numpy.zeros(len(points))
    if known.any():
        spread = points[known].std(axis=0)
        steps = (points[known] - numpy.median(points[known], axis=0)) / numpy.where(spread > 0, spread, 1)
        far[known] = numpy.linalg.norm(steps, axis=1)
    apart = {int(place) for place in numpy.argsort(-far, kind="stable")[:_NAMED] if far[place] > _APART}
    return [
        f"{layer}·{head}" if place in apart or (layer, head) == chosen else ""
        for place, (layer, head) in enumerate(heads)
    ]


def metrics_text(table: "pandas.DataFrame", layer: int, head: int) -> str:
    """Write a head's metrics, with spread over several texts."""
    if (layer, head) not in table.index:
        return ""
    row = table.loc[(layer, head)]
    lines = [f"{metric.label}: {_with_spread(row, name)}" for name, metric in METRICS.items() if row[name] == row[name]]
    return "<br>".join([f"layer {layer}, head {head}", *lines])


def _with_spread(row: "pandas.Series", name: str) -> str:
    spread = f"{name}_spread"
    return f"{row[name]:.3f} ± {row[spread]:.3f}" if spread in row.index else f"{row[name]:.3f}"


def check_metric(metric: str) -> None:
    """Refuse a metric that there isn't, by name."""
    if metric not in METRICS:
        raise ShapeError(f"the metric {metric!r} was asked for; there are {', '.join(METRICS)}")
