"""Plot a head's queries and keys with its strongest links."""

import operator

import plotly.graph_objects as go
import torch

from attention_viz.analysis.plane import Plane, queries_and_keys_plane
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, number_axis
from attention_viz.views.style.captions import caption
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, readable, shortened, spread

__all__ = ["queries_and_keys"]

# So many tokens of a side are named beside their points; so many links are drawn, of this weight at least.
_NAMED, _LINKS, _LEAST = 24, 16, 0.1


def queries_and_keys(
    trace: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Each query and each key of a head as a point, along the two directions in which they differ most.

    `attention_viz.analysis.plane.queries_and_keys_plane` tells how; the title says what share of the variance these two
    hold. Lines join each of up to 16 queries with the key that it looks at most, the heaviest links.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        stream: which stream; None for the only one there is.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    stream, colours = trace.stream(stream), palette(theme)
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
    names = readable(tokens.written)
    named = set(spread(len(names), _NAMED))
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
    queries, keys = (readable(tokens.written) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
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
            hovertext=f"{queries[query]} looks at {keys[key]}: {weight:.3f}",
            hoverinfo="text",
            showlegend=False,
        )
