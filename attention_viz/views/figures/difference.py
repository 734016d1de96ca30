"""Show one head's weights after an edit minus before."""

from collections.abc import Sequence

import numpy
import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks, blocked_of, blocks_of, weights_of
from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis
from attention_viz.views.style.blocks import block_coordinates, block_note, hover_texts, spans
from attention_viz.views.style.captions import caption
from attention_viz.views.style.hatching import add_hatch
from attention_viz.views.style.numbers import LEAST, add_numbers
from attention_viz.views.style.scale import colour_bar, full_change
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, readable, with_minus

__all__ = ["difference"]

_PRINTED_UP_TO = 12


def difference(
    before: Trace, after: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """What one head's weights gained and lost, after minus before, 0 in the colour of the page.

    Cells that are blocked afterwards are hatched. The scale reaches as far down as up. Of more than 250,000 cells, each
    block of neighbours is drawn as its largest change, and the title says so.

    Raises:
        TraceError: there is no such layer or stream, or the two are of different lengths.
        ShapeError: there is no such head.
    """
    stream, colours = before.stream(stream), palette(theme)
    old, new = (trace.attention(layer, stream).head(head) for trace in (before, after))
    if old.shape != new.shape:
        raise TraceError(f"a difference needs matrices of one shape; got {old.shape} before and {new.shape} after")
    change = _change(old, new)
    queries = readable(before.query_tokens(stream).written)
    keys = readable(before.key_tokens(stream).written)
    figure = go.Figure([_cells(change, _hover_texts(change, old, new, queries, keys), colours)])
    add_hatch(figure, change.blocked, colours, key=False, size=change.size)
    if _printed(change):
        add_numbers(figure, _short, least=LEAST)
    title = f"{escaped(caption(before, layer, head, stream))}: after − before"
    arrange(figure, title, colours, note=block_note(change, "the largest change"))
    label_axes(
        figure,
        labelled_axis(keys, "key: who is looked at", colours.key, colours, vertical=False),
        labelled_axis(queries, "query: who is looking", colours.query, colours, vertical=True),
    )
    return figure


def _change(old: Attention, new: Attention) -> Blocks:
    def rows(some: slice) -> tuple[numpy.ndarray, numpy.ndarray]:
        before, after = old.rows(some), new.rows(some)
        return weights_of(after) - weights_of(before), blocked_of(after)

    return blocks_of((new.shape[-2], new.shape[-1]), rows)


def _hover_texts(
    change: Blocks, old: Attention, new: Attention, queries: Sequence[str], keys: Sequence[str]
) -> numpy.ndarray:
    names = spans(change, 0, queries), spans(change, 1, keys)
    if not change.whole:
        return hover_texts(
            *names, lambda query, key, i, j: f"{query} to {key}: by {_signed(float(change.values[i, j]), 6)}"
        )
    before, after = weights_of(old), weights_of(new)
    return hover_texts(
        *names,
        lambda query, key, i, j: f"{query} looks at {key}: {before[i, j]:.6f} before, {after[i, j]:.6f} after",
    )


def _signed(number: float, digits: int) -> str:
    return with_minus(f"{number:+.{digits}f}")


def _printed(change: Blocks) -> bool:
    return change.whole and max(change.shape) <= _PRINTED_UP_TO


def _short(number: float) -> str:
    return _signed(number, 2)


def _cells(change: Blocks, texts: numpy.ndarray, colours: Palette) -> go.Heatmap:
    values = change.values
    largest = full_change(values)
    gap = 1 if _printed(change) else 0
    return go.Heatmap(
        z=values,
        zmin=-largest,
        zmax=largest,
        colorscale=colour_scale(colours.differences),
        hovertext=texts,
        hovertemplate="%{hovertext}<extra></extra>",
        xgap=gap,
        ygap=gap,
        colorbar=colour_bar("change"),
        **block_coordinates(change),
    )
