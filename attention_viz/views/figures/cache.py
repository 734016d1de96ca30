"""The cached keys of a decoder and each step's weights on them."""

import numpy
import plotly.graph_objects as go

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.trace.slots import are_alike
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import paint
from attention_viz.views.style.marks import add_hatch
from attention_viz.views.style.scale import full_colour
from attention_viz.views.style.theme import Palette, ThemeName, colour_scale, palette
from attention_viz.views.style.wording import escaped, shortened

__all__ = ["cache"]

# Rows of the picture, and columns: neighbouring keys are taken together where there are more.
_STEPS, _COLUMNS = 12, 128
_ROW, _TOP, _BOTTOM = 14, 26, 26


def cache(
    trace: Trace, layer: int, head: int, position: int = -1, *, stream: str | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw a decoder's KV cache: one row per step for the last steps, one column per key.

    Each step adds a key on the right. A row has its token's weights on each key in one head. Keys that it couldn't
    attend to, because they were evicted or outside a window, are hatched. Above 128 keys, neighbours are drawn as their
    largest weight, and the title says so.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0.
        position: the last row.
        stream: the stream; None for the only one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or position is missing.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    read = trace.query_tokens(stream)
    if not are_alike(stream, read, trace.key_tokens(stream)) or len(read) != len(trace.key_tokens(stream)):
        raise TraceError(f"a KV cache needs keys that are the rows' own tokens; the {stream} has others")
    last = read.resolve(position)
    first = max(0, min(len(read) - 1 - trace.provenance.generated, last), last - _STEPS + 1)
    rows, keys = list(range(first, last + 1)), last + 1
    weights, there, seen = _cells(trace.attention(layer, stream).head(head), rows)
    width = -(-keys // _COLUMNS)
    starts = numpy.arange(0, keys, width)
    drawn = numpy.maximum.reduceat(numpy.where(there, weights, -1.0), starts, axis=1)
    gone = numpy.logical_and.reduceat(~seen | ~there, starts, axis=1) & (drawn >= 0)
    tokens = read.written
    names = [_name(tokens, start, min(start + width, keys) - 1) for start in starts.tolist()]
    figure = go.Figure(
        go.Heatmap(
            z=numpy.where(drawn < 0, numpy.nan, drawn),
            zmin=0,
            zmax=full_colour(weights, keys),
            colorscale=colour_scale(colours.weights),
            hoverongaps=False,
            hovertext=[[f"{escaped(tokens[row])} → {escaped(name)}" for name in names] for row in rows],
            hovertemplate="%{hovertext}: %{z:.6f}<extra></extra>",
            showscale=False,
            xgap=1 if len(names) <= _COLUMNS // 4 else 0,
            ygap=1,
        )
    )
    add_hatch(figure, gone, colours, key=False)
    each = "" if width == 1 else f", {width} per column, the largest weight"
    ends = {0: tokens[0], len(names) - 1: tokens[last]} if len(names) > 1 else {0: tokens[last]}
    _arrange(figure, f"{keys:,} keys, oldest first{each}", drawn.shape, ends, colours)
    return figure


def _cells(call: Attention, rows: list[int]) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Return (row, key) weights, cached keys and allowed keys of some rows."""
    call, keys = call.rows(rows), rows[-1] + 1
    there = numpy.arange(keys) <= numpy.array(rows)[:, None]
    seen = numpy.ones_like(there)
    if call.allowed is not None:
        seen = numpy.broadcast_to(call.allowed.cpu().numpy(), call.shape)[:, :keys]
    return call.weights[:, :keys].detach().float().cpu().numpy(), there, seen


def _arrange(figure: go.Figure, title: str, shape: tuple[int, ...], ends: dict[int, str], colours: Palette) -> None:
    """Lay out the figure; `ends` are the columns' end tokens."""
    rows, columns = shape
    heading = {"text": title, "font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.98}
    margin = {"l": 8, "r": 8, "t": _TOP, "b": _BOTTOM}
    paint(figure, colours, title=heading, height=rows * _ROW + _TOP + _BOTTOM, margin=margin)
    figure.update_xaxes(
        tickvals=list(ends),
        ticktext=[escaped(shortened(one)) for one in ends.values()],
        tickangle=0,
        showgrid=False,
        zeroline=False,
        fixedrange=True,
        range=[-0.5, columns - 0.5],
    )
    figure.update_yaxes(visible=False, fixedrange=True, range=[rows - 0.5, -0.5])


def _name(tokens: tuple[str, ...], first: int, last: int) -> str:
    return f"{tokens[first]} ({first})" if first == last else f"{tokens[first]} … {tokens[last]} ({first}–{last})"
