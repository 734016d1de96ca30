"""All heads of a layer side by side: small matrices on one scale, to see at a glance whether they agree."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heatmap import arrange, colour_bar, full_colour
from attention_viz.views.style.theme import MONOSPACE, ThemeName, colour_scale, palette, ramp
from attention_viz.views.style.wording import escaped, readable, shortened, spread

__all__ = ["side_by_side"]

_ACROSS = 4
_NAMED = 16
_HEIGHT, _TOP = 230, 70


def side_by_side(trace: Trace, layer: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """The weights of every head of one layer, a small matrix each, queries down and keys across.

    Args:
        trace: what was recorded.
        layer: which layer, from 0.
        stream: which stream; None for the only one there is.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream.
    """
    stream, colours = trace.stream(stream), palette(theme)
    weights = trace.attention(layer, stream).weights.detach().float().cpu().numpy()
    across = min(_ACROSS, len(weights))
    down = -(-len(weights) // across)
    titles = [f"head {head}" for head in range(len(weights))]
    figure = make_subplots(down, across, subplot_titles=titles, horizontal_spacing=0.04, vertical_spacing=0.3 / down)
    queries, keys = (readable(tokens.labels) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    stops, full = ramp(colours.weight_low, colours.weight_high), max(full_colour(one) for one in weights)
    for head, one in enumerate(weights):
        said = [
            [f"{query} looks at {key}: {one[i, j]:.6f}" for j, key in enumerate(keys)]
            for i, query in enumerate(queries)
        ]
        cells = go.Heatmap(
            z=one,
            zmin=0,
            zmax=full,
            colorscale=colour_scale(stops),
            hovertext=said,
            hovertemplate=f"head {head}: %{{hovertext}}<extra></extra>",
            showscale=head == 0,
            colorbar=colour_bar("weight"),
        )
        figure.add_trace(cells, head // across + 1, head % across + 1)
    arrange(figure, f"All heads of layer {escaped(trace.label(layer, stream))}", colours)
    figure.update_layout(height=_TOP + _HEIGHT * down)
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    _name(figure, queries, keys, across)
    return figure


def _name(figure: go.Figure, queries: list[str], keys: list[str], across: int) -> None:
    """Tokens along the outer edges only: inside they would stand between the matrices."""
    font = {"family": MONOSPACE, "size": 10}
    for axes, labels in ((figure.select_xaxes(), keys), (figure.select_yaxes(), queries)):
        named = spread(len(labels), _NAMED)
        for axis in axes:
            axis.update(
                tickvals=named,
                ticktext=[shortened(labels[at], 10) for at in named],
                tickfont=font,
                showgrid=False,
                automargin=True,
            )
    figure.update_xaxes(tickangle=-90, zeroline=False)
    figure.update_yaxes(autorange="reversed", zeroline=False)
    for number, axis in enumerate(figure.select_yaxes()):
        axis.update(showticklabels=number % across == 0)
