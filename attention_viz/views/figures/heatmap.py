"""Draw one head: queries down, keys across."""

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks, call_blocks
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis
from attention_viz.views.style.blocks import block_coordinates, block_note, hover_texts, spans
from attention_viz.views.style.captions import caption
from attention_viz.views.style.hatching import add_hatch
from attention_viz.views.style.numbers import add_numbers
from attention_viz.views.style.scale import full_colour, weight_bar
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable

__all__ = ["heatmap"]

# Matrices up to this size have their numbers printed in the cells.
_PRINTED_UP_TO = 14


def heatmap(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    names: bool = True,
    theme: ThemeName = "light",
) -> go.Figure:
    """The weights of one head, queries down and keys across, 0 in the colour of the page.

    The deepest colour stands for 1, or in long texts for the largest weight, or for what nearly all stay below: the
    colour bar says which. Of more than 250,000 cells, each block of neighbours is drawn as its largest weight, and the
    title says so.

    Args:
        trace: what was recorded.
        layer: its number, the model's own.
        head: which head, from 0.
        stream: which stream; None for the only one there is.
        names: whether hovering over a cell names its two tokens. Without, it tells their positions, and the figure of
            a long text is a tenth as large.
        theme: "light" or "dark".

    Raises:
        TraceError: there is no such layer or stream, or the head has weights that are not numbers.
        ShapeError: there is no such head.
    """
    stream = trace.stream(stream)
    colours = palette(theme)
    blocks = call_blocks(trace.attention(layer, stream).head(head))
    queries = readable(trace.query_tokens(stream).written)
    keys = readable(trace.key_tokens(stream).written)
    figure = go.Figure([_cells(blocks, queries, keys, colours) if names else _nameless(blocks, colours)])
    add_hatch(figure, blocks.blocked, colours, size=blocks.size)
    if names and _printed(blocks):
        add_numbers(figure, "{:.3f}".format, blocked=blocks.blocked)
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours, note=block_note(blocks))
    label_axes(
        figure,
        labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=False),
        labelled_axis(queries, "query: who is looking", colours.query, colours, vertical=True),
    )
    return figure


def _printed(blocks: Blocks) -> bool:
    return blocks.whole and max(blocks.shape) <= _PRINTED_UP_TO


def _cells(blocks: Blocks, queries: list[str], keys: list[str], colours: Palette) -> go.Heatmap:
    weights = blocks.values
    full = full_colour(weights, max(blocks.shape))
    gap = 1 if _printed(blocks) else 0
    return go.Heatmap(
        z=weights,
        zmin=0,
        zmax=full,
        colorscale=colour_scale(colours.weights),
        hovertext=_hover_texts(blocks, queries, keys),
        hovertemplate="%{hovertext}<extra></extra>",
        xgap=gap,
        ygap=gap,
        colorbar=weight_bar(full, float(blocks.values.max(initial=0.0))),
        **block_coordinates(blocks),
    )


def _hover_texts(blocks: Blocks, queries: list[str] | None, keys: list[str] | None) -> numpy.ndarray:
    looks = "looks" if blocks.size[0] == 1 else "look"
    most = "" if blocks.whole else "at most "
    return hover_texts(
        spans(blocks, 0, queries),
        spans(blocks, 1, keys),
        lambda query, key, i, j: (
            f"{query} {looks} at {key}: " + ("blocked" if blocks.blocked[i, j] else f"{most}{blocks.values[i, j]:.6f}")
        ),
    )


def _nameless(blocks: Blocks, colours: Palette) -> go.Heatmap:
    full = full_colour(blocks.values, max(blocks.shape))
    return go.Heatmap(
        z=numpy.where(blocks.blocked, numpy.float32("nan"), blocks.values),
        zmin=0,
        zmax=full,
        colorscale=colour_scale(colours.weights),
        hoverongaps=False,
        hovertext=None if blocks.whole else _hover_texts(blocks, None, None),
        hovertemplate="position %{y} looks at position %{x}: %{z:.6f}<extra></extra>"
        if blocks.whole
        else "%{hovertext}<extra></extra>",
        colorbar=weight_bar(full, float(blocks.values.max(initial=0.0))),
        **block_coordinates(blocks),
    )
