"""Heads as points by two metrics or by similarity, and a head's queries and keys as points."""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.likeness import head_distances
from attention_viz.analysis.metrics import METRICS, Metric
from attention_viz.analysis.plane import Plane, queries_and_keys_plane
from attention_viz.errors import ShapeError
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, shortened, spread, token_names

if TYPE_CHECKING:
    import pandas

__all__ = ["head_map", "head_scatter", "heads_as_points", "metric_in", "metrics_text", "queries_and_keys"]

# The metric that only tables of layers without a softmax have.
MIXERS_ONLY = "row_sum"
# At most so many heads are named, which lie this many standard deviations from the median at least.
_NAMED, _APART = 10, 2.0
# A name takes so much of the figure's width and height.
_LABEL = numpy.array([0.06, 0.05])
# So many tokens of a side are named beside their points; so many links are drawn, of this weight at least.
_TOKENS, _LINKS, _LEAST = 24, 16, 0.1


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
    own = [place for place, head in enumerate(heads) if head == chosen and not numpy.isnan(points[place]).any()]
    apart = [int(place) for place in numpy.argsort(-far, kind="stable") if far[place] > _APART]
    room = numpy.ptp(points[known], axis=0) * _LABEL if known.any() else numpy.ones(2)
    named = list[int]()
    for place in dict.fromkeys([*own, *apart]):
        # A name over another couldn't be read.
        beside = numpy.abs(points[named] - points[place]) >= room
        if len(named) < _NAMED and bool(beside.any(axis=1).all()):
            named.append(place)
    return [f"{layer}·{head}" if place in named else "" for place, (layer, head) in enumerate(heads)]


def metrics_text(table: "pandas.DataFrame", layer: int, head: int) -> str:
    """Write a head's metrics, with spread over several texts."""
    if (layer, head) not in table.index:
        return ""
    row = table.loc[(layer, head)]
    there = [name for name in METRICS if name in row.index and row[name] == row[name]]
    lines = [f"{metric_in(table, name).label}: {_with_spread(row, name)}" for name in there]
    return "<br>".join([f"layer {layer}, head {head}", *lines])


def _with_spread(row: "pandas.Series", name: str) -> str:
    spread = f"{name}_spread"
    return f"{row[name]:.3f} ± {row[spread]:.3f}" if spread in row.index else f"{row[name]:.3f}"


def metric_in(table: "pandas.DataFrame", name: str) -> Metric:
    """Return a metric as it is in a table of heads: without a softmax, weights are shares of size."""
    if name not in METRICS:
        raise ShapeError(f"unknown metric {name!r}; choose {', '.join(METRICS)}")
    metric = METRICS[name]
    if name in table:
        return metric.in_mixers if MIXERS_ONLY in table else metric
    there = ", ".join(one for one in METRICS if one in table)
    why = f": {metric.mixers}" if MIXERS_ONLY in table and metric.mixers else ""
    raise ShapeError(f"these layers have no metric {name!r}{why}; choose {there}")


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
    """Draw every head as a point, one metric across and another up; later layers are darker.

    Args:
        trace: the run.
        across: a name in `METRICS`.
        up: a name in `METRICS`.
        stream: the attention type; None for the only one.
        chosen: layer and head to mark.
        table: from `head_table`, such as of several texts; by default that of the trace.
        theme: "light" or "dark".

    Raises:
        ShapeError: the metric is unknown, or these layers don't have it.
        TraceError: the stream is missing, or there are several and none was named.
    """
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    right, above = (metric_in(table, name) for name in (across, up))
    figure = heads_as_points(table, table[across].tolist(), table[up].tolist(), chosen, colours)
    arrange(figure, f"{above.label} against {right.label.lower()}", colours)
    figure.update_xaxes(title={"text": f"{right.label}, {right.unit}"}, **number_axis(colours))
    figure.update_yaxes(title={"text": f"{above.label}, {above.unit}"}, **number_axis(colours))
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
    """Draw every head as a point; similar heads are close together.

    Distances are √ of the mean Jensen–Shannon divergence of two heads' rows. Classical scaling (Torgerson 1952) keeps
    as much of them as two dimensions can; the axes mean nothing by themselves.

    Args:
        trace: the run.
        stream: the attention type; None for the only one.
        chosen: layer and head to mark.
        table: from `head_table`, such as of several texts; by default that of the trace.
        distances: from `head_distances`, if you have them already: for long texts they take a second.
        theme: "light" or "dark".

    Raises:
        ShapeError: distances of another number of heads.
        TraceError: the stream is missing, or there are several and none was named.
    """
    stream, colours = trace.stream(stream), palette(theme)
    table = head_table(trace, stream) if table is None else table
    distances = head_distances(trace, stream) if distances is None else distances
    if distances.shape != (len(table), len(table)):
        raise ShapeError(
            f"distances of {len(table)} heads must be ({len(table)}, {len(table)}); got {tuple(distances.shape)}"
        )
    places, share = _flat(distances.numpy())
    figure = heads_as_points(table, places[:, 0].tolist(), places[:, 1].tolist(), chosen, colours)
    arrange(figure, f"Similar heads are close together ({share:.0%} of the distances kept)", colours)
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


def queries_and_keys(
    trace: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw each query and key of a head as a point, along their two main directions.

    See `attention_viz.analysis.plane.queries_and_keys_plane`; the title has these directions' share of the variance.
    Lines join each of up to 16 queries with its strongest key, the heaviest links.

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    plane = queries_and_keys_plane(trace, layer, head, stream)
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    figure = go.Figure()
    _add_links(figure, trace, layer, head, stream, plane, colours)
    _add_points(figure, plane.queries, queries, "query", colours.query, "circle", colours)
    _add_points(figure, plane.keys, keys, "key", colours.key, "square", colours)
    title = f"Queries and keys · {escaped(caption(trace, layer, head, stream))}"
    arrange(figure, title, colours, note=f"{plane.share:.0%} of their variance; lines: the strongest links")
    figure.update_layout(legend={"x": 1, "xanchor": "right", "y": -0.03, "yanchor": "top"})
    axis = {**number_axis(colours), "showticklabels": False, "zeroline": False}
    figure.update_xaxes(title={"text": "first component", "standoff": 4}, **axis)
    figure.update_yaxes(title={"text": "second", "standoff": 4}, **axis)
    return figure


def _add_points(
    figure: go.Figure, points: torch.Tensor, tokens: Tokens, side: str, colour: str, symbol: str, colours: Palette
) -> None:
    names = token_names(tokens)
    named = set(spread(len(names), _TOKENS))
    figure.add_scatter(
        x=points[:, 0].tolist(),
        y=points[:, 1].tolist(),
        mode="markers+text",
        name=side,
        marker={"color": colour, "symbol": symbol, "size": 7, "line": {"color": colours.background, "width": 0.5}},
        text=[shortened(name, 12) if place in named else "" for place, name in enumerate(names)],
        textposition="top center" if side == "query" else "bottom center",
        textfont={"family": MONOSPACE, "size": 10, "color": colour},
        hovertext=[f"{side} {place}: {name}" for place, name in enumerate(names)],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
    )


def _add_links(
    figure: go.Figure, trace: Trace, layer: int, head: int, stream: str, plane: Plane, colours: Palette
) -> None:
    """Link the queries with the heaviest links to their top key; wider if heavier."""
    weights = trace.weights(layer, head, stream).detach().float().cpu().nan_to_num(0)
    best = weights.max(dim=-1)
    links = sorted(
        zip(best.values.tolist(), best.indices.tolist(), range(len(weights)), strict=True),
        key=operator.itemgetter(0),
        reverse=True,
    )
    queries, keys = (token_names(tokens) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    for weight, key, query in links[:_LINKS]:
        if weight < _LEAST:
            break
        ends = torch.stack([plane.queries[query], plane.keys[key]])
        figure.add_scatter(
            x=ends[:, 0].tolist(),
            y=ends[:, 1].tolist(),
            mode="lines",
            line={"color": colours.accent, "width": 0.5 + 2.5 * weight},
            opacity=0.25 + 0.5 * weight,
            hovertext=f"{queries[query]} attends to {keys[key]}: {weight:.3f}",
            hoverinfo="text",
            showlegend=False,
        )
