"""One head as a picture for print: SVG written from the trace itself, so that no browser is needed to make it."""

import base64
import io
import textwrap

import numpy
from jaxtyping import Float, UInt8
from PIL import Image

from attention_viz.analysis.blocks import Blocks, call_blocks
from attention_viz.trace.trace import Trace
from attention_viz.views.style.blocks import block_note
from attention_viz.views.style.captions import caption, provenance_line
from attention_viz.views.style.hatching import segments
from attention_viz.views.style.numbers import LEAST
from attention_viz.views.style.scale import full_colour
from attention_viz.views.style.theme import LIGHT, MONOSPACE, SANS, ink_on, on_ramp
from attention_viz.views.style.wording import escaped, shortened, spread

__all__ = ["heatmap_svg"]

# Pixels of the drawing: the matrix is a square of about _SIDE, and cells no larger than _LARGEST_CELL.
_SIDE = 560
_LARGEST_CELL = 44.0
_LETTER = 7.3
_TOP, _RIGHT, _BOTTOM = 52, 110, 48
_STEPS = 256


def heatmap_svg(trace: Trace, layer: int, head: int, stream: str | None = None) -> str:
    """The weights of one head as an SVG document: title, axes, colour bar, and a line that says where it comes from.

    Of more than 250,000 cells, each block of neighbours is drawn as its largest weight, and a line says so.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    stream = trace.stream(stream)
    blocks = call_blocks(trace.attention(layer, stream).head(head))
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    full = full_colour(blocks.values, max(blocks.shape))
    cell = min(_LARGEST_CELL, _SIDE / max(blocks.shape))
    left, top = _margin(queries.written) + 30, _TOP + _margin(keys.written)
    wide, high = blocks.shape[1] * cell, blocks.shape[0] * cell
    matrix = f'<g transform="translate({left:.1f} {top:.1f})">{_cells(blocks, full, cell)}'
    matrix += _labels(queries.written, cell, across=False) + _labels(keys.written, cell, across=True)
    matrix += _titles(wide, high, left) + _bar(wide, full, float(blocks.values.max(initial=0.0))) + "</g>"
    width = max(left + wide + _RIGHT, 640)
    title, note = escaped(caption(trace, layer, head, stream)), block_note(blocks)
    origin = provenance_line(trace, layer, head, queries)
    lines = textwrap.wrap(origin, int(width / 5.4))
    height = top + high + _BOTTOM + 13 * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{escaped(SANS)}" fill="{LIGHT.ink}">'
        f"<title>{title}</title><desc>{escaped(origin)}</desc>"
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>'
        f'<text x="16" y="28" font-size="16" font-weight="600">{title}</text>'
        f"{_note(note)}{matrix}"
        f"{_footer(lines, top + high + _BOTTOM)}</svg>\n"
    )


def _note(note: str) -> str:
    return f'<text x="16" y="46" font-size="12" fill="{LIGHT.muted}">{note}</text>' if note else ""


def _footer(lines: list[str], top: float) -> str:
    texts = [f'<text x="16" y="{top + 13 * row:.0f}">{escaped(line)}</text>' for row, line in enumerate(lines)]
    return f'<g font-size="9" fill="{LIGHT.muted}">{"".join(texts)}</g>'


def _margin(labels: tuple[str, ...]) -> float:
    return max(len(shortened(label)) for label in labels) * _LETTER + 12


def _cells(blocks: Blocks, full: float, cell: float) -> str:
    """The weights as colours, the hatching over what is blocked, and the numbers where they fit."""
    wide, high = blocks.shape[1] * cell, blocks.shape[0] * cell
    # The last blocks reach beyond the text where it doesn't divide evenly: what is beyond is cut off.
    start = f'<svg width="{wide:.1f}" height="{high:.1f}" overflow="hidden">'
    frame = f'<rect width="{wide:.1f}" height="{high:.1f}" fill="none" stroke="{LIGHT.line}"/>'
    numbers = _numbers(blocks.values, full, cell) if blocks.whole else ""
    return f"{start}{_image(blocks, full, cell)}{_hatch(blocks, cell)}</svg>{frame}{numbers}"


def _image(blocks: Blocks, full: float, cell: float) -> str:
    """The matrix as one picture, a pixel a cell or block: the file stays small at 512 tokens and sharp at any size."""
    stops = [on_ramp(LIGHT.weights, step / (_STEPS - 1)) for step in range(_STEPS)]
    colours = numpy.array([_rgb(colour) for colour in stops], numpy.uint8)
    shares = numpy.nan_to_num(blocks.values / full).clip(0, 1)
    data = base64.b64encode(_png(colours[(shares * (_STEPS - 1)).round().astype(int)])).decode()
    high, wide = (count * length * cell for count, length in zip(blocks.values.shape, blocks.size, strict=True))
    return (
        f'<image width="{wide:.1f}" height="{high:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def _png(pixels: UInt8[numpy.ndarray, "high wide 3"]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def _hatch(blocks: Blocks, cell: float) -> str:
    lines = "".join(
        f"M{(a[0] + 0.5) * cell:.1f} {(a[1] + 0.5) * cell:.1f}L{(b[0] + 0.5) * cell:.1f} {(b[1] + 0.5) * cell:.1f}"
        for a, b in segments(blocks.blocked, blocks.size)
    )
    return f'<path d="{lines}" stroke="{LIGHT.blocked}" fill="none"/>' if lines else ""


def _numbers(weights: Float[numpy.ndarray, "query key"], full: float, cell: float) -> str:
    """Three digits in each cell, where they fit and the weight is more than next to nothing."""
    if cell < 30:
        return ""
    cells = [
        f'<text x="{(j + 0.5) * cell:.1f}" y="{(i + 0.5) * cell + 4:.1f}" '
        f'fill="{ink_on(on_ramp(LIGHT.weights, weight / full))}">{f"{weight:.3f}".removeprefix("0")}</text>'
        for (i, j), weight in numpy.ndenumerate(weights)
        if weight >= LEAST
    ]
    return f'<g font-size="11" text-anchor="middle">{"".join(cells)}</g>'


def _labels(labels: tuple[str, ...], cell: float, *, across: bool) -> str:
    size = min(12.0, max(7.0, cell * 0.9))
    texts: list[str] = []
    for position in spread(len(labels), int(len(labels) * cell / (size + 1)) or 1):
        at = (position + 0.5) * cell
        place = (
            f'transform="translate({at + size / 3:.1f} -6) rotate(-90)"'
            if across
            else f'x="-6" y="{at + size / 3:.1f}"'
        )
        name = escaped(shortened(labels[position]))
        texts.append(f'<text {place} text-anchor="{"start" if across else "end"}">{name}</text>')
    return f'<g font-family="{escaped(MONOSPACE)}" font-size="{size:.1f}">{"".join(texts)}</g>'


def _titles(wide: float, high: float, left: float) -> str:
    return (
        f'<text x="0" y="{high + 22:.1f}" font-size="12" fill="{LIGHT.key}">key: who is looked at →</text>'
        f'<text transform="translate({18 - left:.1f} {high:.1f}) rotate(-90)" font-size="12" fill="{LIGHT.query}">'
        "← query: who is looking</text>"
    )


def _bar(wide: float, full: float, largest: float) -> str:
    """The colour bar: what each colour stands for, from 0 to the deepest, and what the hatching means."""
    stops = LIGHT.weights
    gradient = "".join(
        f'<stop offset="{1 - step / (len(stops) - 1):.3f}" stop-color="{colour}"/>'
        for step, colour in reversed(list(enumerate(stops)))
    )
    tall = 160
    more = "≥ " if largest > full else ""
    ticks = "".join(
        f'<text x="{wide + 42:.1f}" y="{tall * (1 - tick) + 4:.1f}" font-size="11">{said}{full * tick:.3g}</text>'
        for tick, said in ((0, ""), (0.5, ""), (1, more))
    )
    return (
        f'<defs><linearGradient id="weight" x1="0" x2="0" y1="0" y2="1">{gradient}</linearGradient></defs>'
        f'<rect x="{wide + 24:.1f}" width="12" height="{tall:.1f}" fill="url(#weight)" stroke="{LIGHT.line}"/>{ticks}'
        f'<text x="{wide + 24:.1f}" y="-10" font-size="11" fill="{LIGHT.muted}">weight</text>'
        f'<rect x="{wide + 24:.1f}" y="{tall + 18}" width="12" height="12" fill="none" stroke="{LIGHT.line}"/>'
        f'<path d="M{wide + 24:.1f} {tall + 30}l12 -12" stroke="{LIGHT.blocked}"/>'
        f'<text x="{wide + 42:.1f}" y="{tall + 28}" font-size="11">blocked</text>'
    )


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
