"""One head as a picture for print: SVG written from the trace itself, so that no browser is needed to make it."""

import base64
import struct
import textwrap
import zlib

import numpy
from jaxtyping import Float, UInt8

from attention_viz.trace.trace import Trace
from attention_viz.views.figures.heatmap import blocked_cells, full_colour
from attention_viz.views.style.hatching import segments
from attention_viz.views.style.theme import LIGHT, MONOSPACE, SANS, ramp
from attention_viz.views.style.wording import caption, escaped, provenance_line, shortened, shown, spread

__all__ = ["heatmap_svg"]

# Pixels of the drawing: the matrix is a square of about _SIDE, and cells no larger than _LARGEST_CELL.
_SIDE = 560
_LARGEST_CELL = 44.0
_LETTER = 7.3
_TOP, _RIGHT, _BOTTOM = 52, 110, 48
_STEPS = 256


def heatmap_svg(trace: Trace, layer: int, head: int, stream: str | None = None) -> str:
    """The weights of one head as an SVG document: title, axes, colour bar, and a line that says where it comes from.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    stream = trace.stream(stream)
    weights = trace.weights(layer, head, stream).detach().float().cpu().numpy()
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    cell = min(_LARGEST_CELL, _SIDE / max(weights.shape))
    left, top = _margin(queries.labels) + 30, _TOP + _margin(keys.labels)
    wide, high = weights.shape[1] * cell, weights.shape[0] * cell
    matrix = f'<g transform="translate({left:.1f} {top:.1f})">'
    matrix += _image(weights, wide, high) + _hatch(trace, layer, head, stream, cell) + _numbers(weights, cell)
    matrix += _labels(queries.labels, cell, across=False) + _labels(keys.labels, cell, across=True)
    matrix += _titles(wide, high, left) + _bar(wide, full_colour(weights)) + "</g>"
    width = max(left + wide + _RIGHT, 640)
    title = escaped(caption(trace, layer, head, stream))
    origin = provenance_line(trace, layer, head, queries)
    lines = textwrap.wrap(origin, int(width / 5.4))
    height = top + high + _BOTTOM + 13 * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{escaped(SANS)}" fill="{LIGHT.ink}">'
        f"<title>{title}</title><desc>{escaped(origin)}</desc>"
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>'
        f'<text x="16" y="28" font-size="16" font-weight="600">{title}</text>{matrix}'
        f"{_footer(lines, top + high + _BOTTOM)}</svg>\n"
    )


def _footer(lines: list[str], top: float) -> str:
    texts = [f'<text x="16" y="{top + 13 * row:.0f}">{escaped(line)}</text>' for row, line in enumerate(lines)]
    return f'<g font-size="9" fill="{LIGHT.muted}">{"".join(texts)}</g>'


def _margin(labels: tuple[str, ...]) -> float:
    return max(len(shortened(shown(label))) for label in labels) * _LETTER + 12


def _image(weights: Float[numpy.ndarray, "query key"], wide: float, high: float) -> str:
    """The matrix as one picture, a pixel a cell: the file stays small at 512 tokens and sharp at any size."""
    colours = numpy.array([_rgb(colour) for colour in ramp(LIGHT.weight_low, LIGHT.weight_high, _STEPS)], numpy.uint8)
    pixels = colours[((weights / full_colour(weights)).clip(0, 1) * (_STEPS - 1)).round().astype(int)]
    data = base64.b64encode(_png(pixels)).decode()
    return (
        f'<image width="{wide:.1f}" height="{high:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        f'<rect width="{wide:.1f}" height="{high:.1f}" fill="none" stroke="{LIGHT.line}"/>'
    )


def _png(pixels: UInt8[numpy.ndarray, "high wide 3"]) -> bytes:
    """Pixels as a PNG (W3C PNG specification, sections 5 and 11): eight bits a channel, no filter."""
    high, wide, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _hatch(trace: Trace, layer: int, head: int, stream: str, cell: float) -> str:
    blocked = blocked_cells(trace, layer, head, stream)
    lines = "".join(
        f"M{(a[0] + 0.5) * cell:.1f} {(a[1] + 0.5) * cell:.1f}L{(b[0] + 0.5) * cell:.1f} {(b[1] + 0.5) * cell:.1f}"
        for a, b in segments(blocked)
    )
    return f'<path d="{lines}" stroke="{LIGHT.blocked}" fill="none"/>' if lines else ""


def _numbers(weights: Float[numpy.ndarray, "query key"], cell: float) -> str:
    """Three digits in each cell, where they fit and are not a row of zeros."""
    if cell < 30:
        return ""
    cells = [
        f'<text x="{(j + 0.5) * cell:.1f}" y="{(i + 0.5) * cell + 4:.1f}" '
        f'fill="{LIGHT.background if weight > 0.45 else LIGHT.ink}">{f"{weight:.3f}".removeprefix("0")}</text>'
        for (i, j), weight in numpy.ndenumerate(weights)
        if weight >= 0.0005
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
        name = escaped(shortened(shown(labels[position])))
        texts.append(f'<text {place} text-anchor="{"start" if across else "end"}">{name}</text>')
    return f'<g font-family="{escaped(MONOSPACE)}" font-size="{size:.1f}">{"".join(texts)}</g>'


def _titles(wide: float, high: float, left: float) -> str:
    return (
        f'<text x="0" y="{high + 22:.1f}" font-size="12" fill="{LIGHT.key}">key: who is looked at →</text>'
        f'<text transform="translate({18 - left:.1f} {high:.1f}) rotate(-90)" font-size="12" fill="{LIGHT.query}">'
        "← query: who is looking</text>"
    )


def _bar(wide: float, full: float) -> str:
    """The colour bar: what each colour stands for, from 0 to the deepest, and what the hatching means."""
    stops = ramp(LIGHT.weight_low, LIGHT.weight_high)
    gradient = "".join(
        f'<stop offset="{1 - step / (len(stops) - 1):.3f}" stop-color="{colour}"/>'
        for step, colour in reversed(list(enumerate(stops)))
    )
    tall = 160
    ticks = "".join(
        f'<text x="{wide + 42:.1f}" y="{tall * (1 - tick) + 4:.1f}" font-size="11">{full * tick:.3g}</text>'
        for tick in (0, 0.5, 1)
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
