"""Show a layer's heads side by side on one scale."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.analysis.blocks import MOST_CELLS, Blocks, call_blocks
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange
from attention_viz.views.style.blocks import block_coordinates, block_note, hover_texts, spans
from attention_viz.views.style.scale import full_colour, weight_bar
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable, shortened, spread

__all__ = ["side_by_side"]

_ACROSS = 4
_NAMED = 16
_HEIGHT, _TOP = 230, 70


def side_by_side(trace: Trace, layer: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """The weights of every head of one layer, a small matrix each, queries down and keys across.

    Where they come to more than 250,000 cells, each block of neighbours is drawn as its largest weight, and the title
    says so.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        stream: which stream; None for the only one there is.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream, or a head has weights that are not numbers.
    """
    stream, colours = trace.stream(stream), palette(theme)
    call = trace.attention(layer, stream)
    heads = [call_blocks(call.head(head), most=MOST_CELLS // call.shape[0]) for head in range(call.shape[0])]
    across = min(_ACROSS, len(heads))
    down = -(-len(heads) // across)
    titles = [f"head {head}" for head in range(len(heads))]
    figure = make_subplots(down, across, subplot_titles=titles, horizontal_spacing=0.04, vertical_spacing=0.3 / down)
    queries, keys = (readable(tokens.written) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    full = max(full_colour(one.values, max(one.shape)) for one in heads)
    bar = weight_bar(full, max(float(one.values.max(initial=0.0)) for one in heads))
    for head, one in enumerate(heads):
        cells = _cells(one, head, queries, keys, colours).update(zmax=full, colorbar=bar, showscale=head == 0)
        figure.add_trace(cells, head // across + 1, head % across + 1)
    title = f"All heads of layer {escaped(trace.label(layer, stream))}"
    arrange(figure, title, colours, note=block_note(heads[0]))
    figure.update_layout(height=_TOP + _HEIGHT * down)
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    _name(figure, queries, keys, across)
    return figure


def _cells(blocks: Blocks, head: int, queries: list[str], keys: list[str], colours: Palette) -> go.Heatmap:
    most = "" if blocks.whole else "at most "
    return go.Heatmap(
        z=blocks.values,
        zmin=0,
        colorscale=colour_scale(colours.weights),
        hovertext=hover_texts(
            spans(blocks, 0, queries),
            spans(blocks, 1, keys),
            lambda query, key, i, j: f"{query} looks at {key}: {most}{blocks.values[i, j]:.6f}",
        ),
        hovertemplate=f"head {head}: %{{hovertext}}<extra></extra>",
        **block_coordinates(blocks),
    )


def _name(figure: go.Figure, queries: list[str], keys: list[str], across: int) -> None:
    """Label outer edges only, since inner labels would separate the matrices."""
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
