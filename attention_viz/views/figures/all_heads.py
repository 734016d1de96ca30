"""Show every head's pattern: layers down, heads across."""

import base64
import io
from collections.abc import Iterator

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from PIL import Image

from attention_viz.analysis.blocks import Blocks, call_blocks, weights_of
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes
from attention_viz.views.style.blocks import block_note, cells
from attention_viz.views.style.captions import model_name
from attention_viz.views.style.scale import colour_bar
from attention_viz.views.style.theme import Palette, ThemeName, channels, on_ramp, palette
from attention_viz.views.style.wording import escaped, readable

__all__ = ["all_heads"]

# Dots along a side of a small matrix, and how many blocks of a long text at most.
_SIDE = 64
# Dots between two matrices, and how far apart the lines of the hatching are.
_GAP, _HATCH = 6, 6
_STEPS = 256
# The most dots of the whole picture along a side, so that 32 × 32 heads stay a small file.
_MOST = 2400
# Of the picture, in pixels.
_LEAST, _TALLEST, _WIDE, _AROUND = 300, 1100, 640, 110


def all_heads(trace: Trace, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Draw every head's pattern as a small matrix: layers down, heads across; in each, queries down, keys across.

    A matrix's deepest colour is its own head's largest weight, so that faint patterns show, too; hover to read it. For
    a text longer than some sixty tokens, each block of neighbours is drawn as its largest weight, and the title says
    so.

    Raises:
        TraceError: the stream is missing, there are several and none was named, or a head has weights that aren't
            finite numbers.
    """
    stream, colours = trace.attention_stream(stream), palette(theme)
    numbers = trace.layer_numbers(stream)
    counts = [trace.head_count(layer, stream) for layer in numbers]
    across, down = max(counts), len(counts)
    side = max(8, min(_SIDE, _MOST // max(across, down) - _GAP))
    canvas = _canvas(down, across, side, colours)
    queries, keys = (readable(tokens.written) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    largest, said = numpy.full((down, across), numpy.nan), [[""] * across for _ in range(down)]
    steps = [channels(on_ramp(colours.weights, step / (_STEPS - 1))) for step in range(_STEPS)]
    note, ramp = "", numpy.array(steps, numpy.uint8)
    for row, column, blocks in _heads(trace, stream, side):
        high, wide = _place(row, side), _place(column, side)
        canvas[high, wide] = _drawn(blocks, side, colours, ramp)
        largest[row, column] = blocks.values.max(initial=0.0)
        said[row][column] = _said(trace, stream, (numbers[row], column), blocks, queries, keys)
        note = block_note(blocks)
    bar = {**colour_bar("of the head's<br>largest weight"), "tickvals": [0, 0.5, 1], "ticktext": ["0", "½", "all"]}
    figure = go.Figure([cells(largest, (0, 1), colours.weights, said, opacity=0, colorbar=bar)])
    edges = {"x": -0.5, "y": -0.5, "sizex": across, "sizey": down, "xref": "x", "yref": "y", "xanchor": "left"}
    figure.add_layout_image(source=_source(canvas), sizing="stretch", layer="below", yanchor="top", **edges)
    title = f"{escaped(model_name(trace.provenance.model))} · every head of the {stream}"
    arrange(figure, title, colours, note=note)
    labels = [escaped(trace.label(layer, stream)) for layer in numbers]
    heads = ([str(head) for head in range(across)], "head", colours.ink)
    label_axes(figure, colours, heads, (labels, "layer", colours.ink))
    # Each matrix is a square, however wide the page.
    figure.update_xaxes(constrain="domain")
    figure.update_yaxes(scaleanchor="x", constrain="domain")
    figure.update_layout(height=min(_TALLEST, max(_LEAST, _WIDE * down / across + _AROUND)))
    return figure


def _heads(trace: Trace, stream: str, side: int) -> Iterator[tuple[int, int, Blocks]]:
    for row, layer in enumerate(trace.layer_numbers(stream)):
        call = trace.attention(layer, stream)
        for head in range(call.shape[0]):
            yield row, head, call_blocks(call.head(head), most=side * side)


def _canvas(down: int, across: int, side: int, colours: Palette) -> UInt8[ndarray, "high wide 3"]:
    whole = numpy.empty((down * (side + _GAP), across * (side + _GAP), 3), numpy.uint8)
    whole[:] = channels(colours.background)
    return whole


def _place(number: int, side: int) -> slice:
    start = number * (side + _GAP) + _GAP // 2
    return slice(start, start + side)


def _drawn(
    blocks: Blocks, side: int, colours: Palette, ramp: UInt8[ndarray, "step 3"]
) -> UInt8[ndarray, "side side 3"]:
    """Draw a matrix as framed dots, filling the square, blocked cells hatched."""
    values = numpy.nan_to_num(blocks.values)
    full = float(values.max(initial=0.0)) or 1.0
    rows, columns = (numpy.arange(side) * count // side for count in values.shape)
    dots = ramp[(_at(values, rows, columns) / full * (_STEPS - 1)).round().astype(int)]
    slanted = (numpy.arange(side)[:, None] + numpy.arange(side)) % _HATCH == 0
    dots[_at(blocks.blocked, rows, columns) & slanted] = channels(colours.blocked)
    for edge in (0, -1):
        dots[edge] = dots[:, edge] = channels(colours.line)
    return dots


def _at(
    cells: Float[ndarray, "row column"] | Bool[ndarray, "row column"], rows: ndarray, columns: ndarray
) -> Float[ndarray, "side side"] | Bool[ndarray, "side side"]:
    return cells[rows[:, None], columns]


def _said(
    trace: Trace, stream: str, place: tuple[int, int], blocks: Blocks, queries: list[str], keys: list[str]
) -> str:
    layer, head = place
    weights = blocks.values if blocks.size == (1, 1) else weights_of(trace.attention(layer, stream).head(head))
    query, key = divmod(int(weights.argmax()), weights.shape[-1])
    label = escaped(trace.label(layer, stream))
    pair = f"{queries[query]} attends to {keys[key]}: {weights[query, key]:.6f}"
    return f"layer {label}, head {head}: largest weight, {pair}"


def _source(dots: UInt8[ndarray, "high wide 3"]) -> str:
    file = io.BytesIO()
    Image.fromarray(dots).quantize(_STEPS).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
