"""Show every head's pattern: layers down, heads across."""

import base64
import io
from collections.abc import Iterator, Sequence

import numpy
import plotly.graph_objects as go
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from PIL import Image

from attention_viz.analysis.blocks import Blocks, call_blocks, weights_of
from attention_viz.analysis.signed import has_channels, mixer_of
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes
from attention_viz.views.style.blocks import block_note, cells, spans
from attention_viz.views.style.captions import layer_name, model_name
from attention_viz.views.style.scale import colour_bar, log_places
from attention_viz.views.style.signed import largest_of, precise
from attention_viz.views.style.theme import Palette, ThemeName, channels, on_ramp, palette
from attention_viz.views.style.wording import escaped, token_names

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

    Without a softmax, weights are signed, with their size on a logarithmic scale as in `heatmap`. A layer with a matrix
    per channel is one picture: what arrives in all channels, as in `arrived`.

    Raises:
        TraceError: the stream is missing, there are several and none was named, or a head has weights that aren't
            finite numbers.
    """
    stream, colours = trace.stream(stream), palette(theme)
    numbers = trace.layer_numbers(stream)
    counts = [len(_pictures(trace, stream, layer)) for layer in numbers]
    across, down = max(counts), len(counts)
    side = max(8, min(_SIDE, _MOST // max(across, down) - _GAP))
    canvas = _canvas(down, across, side, colours)
    queries, keys = (token_names(tokens) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    largest, said = numpy.full((down, across), numpy.nan), [[""] * across for _ in range(down)]
    note, ramps = "", {stops: _ramp(stops) for stops in (colours.weights, colours.differences)}
    for row, column, blocks in _heads(trace, stream, side):
        high, wide = _place(row, side), _place(column, side)
        places, stops = _places(blocks, colours, mixes=stream in trace.mixers)
        canvas[high, wide] = _drawn(places, blocks.blocked, side, colours, ramps[stops])
        largest[row, column] = numpy.abs(blocks.values).max(initial=0.0)
        said[row][column] = _said(trace, stream, (numbers[row], column), blocks, queries, keys)
        note = block_note(blocks)
    bar = {**colour_bar("of the head's<br>largest weight"), "tickvals": [0, 0.5, 1], "ticktext": ["0", "½", "all"]}
    ends, stops = (0.0, 1.0), colours.weights
    if stream in trace.mixers:
        bar |= {"tickvals": [-1, -0.5, 0, 0.5, 1], "ticktext": ["− all", "− 1/100", "0", "1/100", "all"]}
        ends, stops = (-1.0, 1.0), colours.differences
    figure = go.Figure([cells(largest, ends, stops, said, opacity=0, colorbar=bar)])
    edges = {"x": -0.5, "y": -0.5, "sizex": across, "sizey": down, "xref": "x", "yref": "y", "xanchor": "left"}
    figure.add_layout_image(source=_source(canvas), sizing="stretch", layer="below", yanchor="top", **edges)
    title = f"{escaped(model_name(trace.provenance.model))} · every head of the {stream}"
    arrange(figure, title, colours, note=note)
    labels = [escaped(layer_name(trace, layer, stream).removeprefix("Layer ")) for layer in numbers]
    heads = ([str(head) for head in range(across)], "head", colours.ink)
    label_axes(figure, colours, heads, (labels, "layer", colours.ink))
    # Each matrix is a square, however wide the page.
    figure.update_xaxes(constrain="domain")
    figure.update_yaxes(scaleanchor="x", constrain="domain")
    figure.update_layout(height=min(_TALLEST, max(_LEAST, _WIDE * down / across + _AROUND)))
    return figure


def _pictures(trace: Trace, stream: str, layer: int) -> Sequence[int]:
    """Return the heads that are drawn; of a layer with a matrix per channel, one."""
    heads = trace.head_count(layer, stream)
    return range(1 if has_channels(trace, stream, layer) else heads)


def _heads(trace: Trace, stream: str, side: int) -> Iterator[tuple[int, int, Blocks]]:
    for row, layer in enumerate(trace.layer_numbers(stream)):
        for head in _pictures(trace, stream, layer):
            yield row, head, _blocks(trace, stream, (layer, head), side * side)


def _blocks(trace: Trace, stream: str, place: tuple[int, int], most: int) -> Blocks:
    layer, head = place
    if has_channels(trace, stream, layer):
        return call_blocks(
            mixer_of(trace, stream, layer), lambda some: some.layer_contributions.detach().float().cpu().numpy(), most
        )
    return call_blocks(trace.attention(layer, stream).head(head), most=most)


def _ramp(stops: Sequence[str]) -> UInt8[ndarray, "step 3"]:
    return numpy.array([channels(on_ramp(stops, step / (_STEPS - 1))) for step in range(_STEPS)], numpy.uint8)


def _places(blocks: Blocks, colours: Palette, *, mixes: bool) -> tuple[Float[ndarray, "row column"], tuple[str, ...]]:
    """Return each cell's place on a ramp, from 0 to 1, and the ramp."""
    values = numpy.nan_to_num(blocks.values)
    if mixes:
        return (log_places(values, largest_of(blocks)) + 1) / 2, colours.differences
    return values / (float(values.max(initial=0.0)) or 1.0), colours.weights


def _canvas(down: int, across: int, side: int, colours: Palette) -> UInt8[ndarray, "high wide 3"]:
    whole = numpy.empty((down * (side + _GAP), across * (side + _GAP), 3), numpy.uint8)
    whole[:] = channels(colours.background)
    return whole


def _place(number: int, side: int) -> slice:
    start = number * (side + _GAP) + _GAP // 2
    return slice(start, start + side)


def _drawn(
    places: Float[ndarray, "row column"],
    blocked: Bool[ndarray, "row column"],
    side: int,
    colours: Palette,
    ramp: UInt8[ndarray, "step 3"],
) -> UInt8[ndarray, "side side 3"]:
    """Draw a matrix as framed dots, filling the square, blocked cells hatched."""
    rows, columns = (numpy.arange(side) * count // side for count in places.shape)
    dots = ramp[(_at(places, rows, columns) * (_STEPS - 1)).round().astype(int)]
    slanted = (numpy.arange(side)[:, None] + numpy.arange(side)) % _HATCH == 0
    dots[_at(blocked, rows, columns) & slanted] = channels(colours.blocked)
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
    whole = blocks.whole or stream in trace.mixers
    weights = blocks.values if whole else weights_of(trace.attention(layer, stream).head(head))
    query, key = divmod(int(numpy.abs(weights).argmax()), weights.shape[-1])
    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, layer)
        name = layer_name(trace, layer, stream).lower()
        which = f"all {mixer.shape[0]} channels, most arrives" if mixer.per == "channel" else f"head {head}, largest"
        at = f"{spans(blocks, 1, keys)[key]} to {spans(blocks, 0, queries)[query]}"
        return f"{escaped(name)}, {which}: {at}, {precise(float(weights[query, key]))}"
    label = escaped(trace.label(layer, stream))
    pair = f"{queries[query]} attends to {keys[key]}: {weights[query, key]:.6f}"
    return f"layer {label}, head {head}: largest weight, {pair}"


def _source(dots: UInt8[ndarray, "high wide 3"]) -> str:
    file = io.BytesIO()
    Image.fromarray(dots).quantize(_STEPS).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
