"""Write one head's heatmap, or a picture with one position's weights, as SVG without a browser."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy
import numpy as np
from jaxtyping import Bool, Float, UInt8

from attention_viz.analysis.blocks import Blocks, call_blocks
from attention_viz.errors import TraceError
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.export.sheet import Sheet, px, wrapped
from attention_viz.views.figures.seen import blocked_patches, called, laid_over, over_patches, png_data
from attention_viz.views.style.blocks import block_note
from attention_viz.views.style.captions import caption, provenance_line
from attention_viz.views.style.marks import svg_path
from attention_viz.views.style.scale import full_colour, log_places
from attention_viz.views.style.signed import largest_of, log_bar, short
from attention_viz.views.style.theme import LIGHT, MONOSPACE, SANS, channels, ink_on, on_ramp
from attention_viz.views.style.wording import escaped, shortened, spread

__all__ = ["heatmap_svg", "overlay_svg"]

# Pixels of the drawing, with letters of 12: the matrix is a square of about _SIDE, and cells no larger than
# _LARGEST_CELL, unless a width is asked for.
_SIDE = 560
_LARGEST_CELL, _LARGEST_ON_PAPER = 44.0, 72.0
_LETTER = 7.3
_TOP, _RIGHT, _BOTTOM = 52, 110, 48
_STEPS = 256
_LETTERS = 12.0
# The smallest letters that can be read, 5 points.
_READABLE = 5 * 96 / 72
# What labels may take of a width.
_LABELS = 0.18
# The margin around the picture, and a line of letters, in pixels.
_MARGIN, _LINE = 16, 16
# So many letters fit beside each other in 448 pixels, small ones and those of the title.
_LETTERS_A_LINE, _TITLE_LETTERS = 88, 58


@dataclass(frozen=True)
class _SvgLayout:
    """The layout in pixels; `factor` is the letters' size over 12, `longest` a label's most letters."""

    width: float
    height: float
    left: float
    top: float
    cell: float
    factor: float
    longest: int
    title: Sequence[str]
    origin: Sequence[str]
    below: float


def heatmap_svg(
    trace: Trace,
    layer: int,
    head: int,
    stream: str | None = None,
    *,
    width: str | float | None = None,
    height: str | float | None = None,
    title: str | bool | None = True,
    footer: bool = True,
    numbers: bool = True,
    font_size: float | None = None,
) -> str:
    """Return one head's weights as an SVG document: title, axes, colour bar, and a provenance line.

    Above 250,000 cells, each block of neighbours is drawn as its largest weight, and a line says so. Without
    a softmax, weights are signed, as in `heatmap`.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: from 0.
        stream: the stream; None for the only one.
        width: such as "170mm", as in `save`; by default as wide as the matrix needs.
        height: likewise; the largest height, because cells stay square.
        title: another title, or None for none; the picture's own by default.
        footer: whether to draw the provenance line; the file has it in any case.
        numbers: whether to print the weights in cells with room. Blocked cells have none.
        font_size: of the usual letters, in points.

    Raises:
        TraceError: the layer or stream is missing, or the head has weights that aren't finite numbers.
        ShapeError: the head is missing.
        AttentionVizError: a length can't be read.
    """
    sheet = Sheet.asked(width, height, title, footer, numbers, font_size)
    stream = trace.stream(stream)
    blocks = call_blocks(trace.attention(layer, stream).head(head))
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    scale = _signed_scale(blocks) if stream in trace.mixers else _weight_scale(blocks)
    named = caption(trace, layer, head, stream) if sheet.title is True else str(sheet.title or "")
    note, origin = block_note(blocks), provenance_line(trace, layer, head, queries)
    page = _page(sheet, blocks, (queries.numbered, keys.numbered), named, note, origin)
    wide, high = blocks.shape[1] * page.cell, blocks.shape[0] * page.cell
    matrix = f'<g transform="translate({page.left:.1f} {page.top:.1f})">{_cells(blocks, scale, page, sheet.numbers)}'
    matrix += _labels(queries.numbered, page, across=False) + _labels(keys.numbered, page, across=True)
    matrix += _titles(wide, high, page)
    matrix += _bar(wide, scale, page.factor, _tall(high, page.factor))
    matrix += (_hatching(wide, page.factor, _tall(high, page.factor)) if blocks.blocked.any() else "") + "</g>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{px(page.width)}" height="{px(page.height)}" '
        f'viewBox="0 0 {px(page.width)} {px(page.height)}" role="img" font-family="{escaped(SANS)}" '
        f'fill="{LIGHT.ink}"><title>{escaped(named or caption(trace, layer, head, stream))}</title>'
        f"<desc>{escaped(origin)}</desc>"
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>'
        f"{_heading(page, note)}{matrix}{_footer(page)}</svg>\n"
    )


@dataclass(frozen=True, eq=False)
class _SvgScale:
    """Each cell's place on a ramp, from 0 to 1, the ramp, the bar's numbers by place, and how a cell's is written."""

    places: Float[numpy.ndarray, "row column"]
    stops: Sequence[str]
    ticks: Mapping[float, str]
    title: str
    write: Callable[[float], str]


def _weight_scale(blocks: Blocks) -> _SvgScale:
    full = full_colour(blocks.values, max(blocks.shape))
    beyond = "≥ " if float(blocks.values.max(initial=0.0)) > full else ""
    ticks = {0.0: "0", 0.5: f"{full / 2:.3g}", 1.0: f"{beyond}{full:.3g}"}
    places = numpy.nan_to_num(blocks.values / full).clip(0, 1)
    return _SvgScale(places, LIGHT.weights, ticks, "weight", weight_text)


def _signed_scale(blocks: Blocks) -> _SvgScale:
    largest = largest_of(blocks)
    ticks = log_bar(largest, "", signed=True)
    named = {(place + 1) / 2: text for place, text in zip(ticks["tickvals"], ticks["ticktext"], strict=True)}
    return _SvgScale((log_places(blocks.values, largest) + 1) / 2, LIGHT.differences, named, "signed weight", short)


def _page(
    sheet: Sheet, blocks: Blocks, labels: tuple[Sequence[str], Sequence[str]], title: str, note: str, origin: str
) -> _SvgLayout:
    factor = sheet.letters / _LETTERS
    side = 16 * factor if sheet.width is not None else 16
    longest = 18 if sheet.width is None else max(3, min(18, int(_LABELS * sheet.width / (_LETTER * factor))))
    down, across = ((max(len(shortened(one, longest)) for one in some) * _LETTER + 12) * factor for some in labels)
    left, right = down + 30 * factor, _RIGHT * factor
    most = _LARGEST_CELL * factor if sheet.width is None else _LARGEST_ON_PAPER
    room = _SIDE if sheet.width is None else (sheet.width - left - right) * max(blocks.shape) / blocks.shape[1]
    cell = min(most, max(room, 24.0) / max(blocks.shape))
    width = sheet.width or max(left + blocks.shape[1] * cell + right, 640 * factor if title else 0)
    lines = wrapped(title, width - 2 * side, 16 * factor) if title else []
    head = (12 + 20 * len(lines) + (16 if note else 0) + (20 if sheet.width is None else 8)) * factor
    # Letters under the picture stay readable where all others are small.
    small = max(factor, 0.75)
    rows = textwrap.wrap(origin, max(8, int((width - 2 * side) / (5.4 * small)))) if sheet.footer else []
    under = 13 * small * (len(rows) + 0.5) if rows else 4 * factor
    top = head + across
    if sheet.height is not None:
        free = sheet.height - top - _BOTTOM * factor - under
        cell = min(cell, max(free, 16.0) / blocks.shape[0])
    high = blocks.shape[0] * cell
    below = top + max(high + _BOTTOM * factor, _tall(high, factor) + 42 * factor)
    whole = sheet.height or below + under
    return _SvgLayout(width, whole, left, top, cell, factor, longest, lines, rows, below)


def _tall(high: float, factor: float) -> float:
    """Limit the colour bar to the matrix's height, with the hatching's legend below."""
    return min(160 * factor, max(48 * factor, high - 32 * factor))


def _heading(page: _SvgLayout, note: str) -> str:
    factor = page.factor
    lines = "".join(
        f'<text x="{px(16 * min(1, factor))}" y="{px((28 + 20 * row) * factor)}" font-size="{px(16 * factor)}" '
        f'font-weight="600">{escaped(line)}</text>'
        for row, line in enumerate(page.title)
    )
    at = (26 + 20 * len(page.title)) * factor
    said = f'<text x="{px(16 * min(1, factor))}" y="{px(at)}" font-size="{px(12 * factor)}" fill="{LIGHT.muted}">'
    return lines + (f"{said}{note}</text>" if note else "")


def _footer(page: _SvgLayout) -> str:
    small = max(page.factor, 0.75)
    texts = [
        f'<text x="{px(16 * min(1, page.factor))}" y="{px(page.below + 13 * small * row)}">{escaped(line)}</text>'
        for row, line in enumerate(page.origin)
    ]
    return f'<g font-size="{px(9 * small)}" fill="{LIGHT.muted}">{"".join(texts)}</g>'


def _cells(blocks: Blocks, scale: _SvgScale, page: _SvgLayout, numbers: bool) -> str:
    cell = page.cell
    wide, high = blocks.shape[1] * cell, blocks.shape[0] * cell
    # The last blocks reach beyond the text where it doesn't divide evenly: what is beyond is cut off.
    start = f'<svg width="{wide:.1f}" height="{high:.1f}" overflow="hidden">'
    frame = f'<rect width="{wide:.1f}" height="{high:.1f}" fill="none" stroke="{LIGHT.line}"/>'
    printed = _numbers(blocks, scale, page) if numbers and blocks.whole else ""
    return f"{start}{_image(blocks, scale, cell)}{_hatch(blocks, cell)}</svg>{frame}{printed}"


def _image(blocks: Blocks, scale: _SvgScale, cell: float) -> str:
    """Draw a pixel per cell or block: small at 512 tokens, sharp at any size."""
    stops = [on_ramp(scale.stops, step / (_STEPS - 1)) for step in range(_STEPS)]
    colours = numpy.array([channels(colour) for colour in stops], numpy.uint8)
    data = png_data(colours[(scale.places * (_STEPS - 1)).round().astype(int)])
    high, wide = (count * length * cell for count, length in zip(blocks.values.shape, blocks.size, strict=True))
    return (
        f'<image width="{wide:.1f}" height="{high:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="{data}"/>'
    )


def _hatch(blocks: Blocks, cell: float) -> str:
    lines = svg_path(blocks.blocked, (cell, cell), size=blocks.size)
    return f'<path d="{lines}" stroke="{LIGHT.blocked}" fill="none"/>' if lines else ""


def _numbers(blocks: Blocks, scale: _SvgScale, page: _SvgLayout) -> str:
    """Write three digits in unblocked cells if they fit."""
    cell, size = page.cell, min(11 * page.factor, page.cell / 2.6)
    if size < _READABLE:
        return ""
    cells = [
        f'<text x="{(j + 0.5) * cell:.1f}" y="{(i + 0.5) * cell + 0.36 * size:.1f}" '
        f'fill="{ink_on(on_ramp(scale.stops, float(scale.places[i, j])))}">{escaped(scale.write(float(weight)))}</text>'
        for (i, j), weight in numpy.ndenumerate(blocks.values)
        if not blocks.blocked[i, j]
    ]
    return f'<g font-size="{px(size)}" text-anchor="middle">{"".join(cells)}</g>'


def _labels(labels: Sequence[str], page: _SvgLayout, *, across: bool) -> str:
    cell, factor = page.cell, page.factor
    size = min(12.0 * factor, max(7.0, cell * 0.9))
    texts: list[str] = []
    for position in spread(len(labels), int(len(labels) * cell / (size + 1)) or 1):
        at = (position + 0.5) * cell
        place = (
            f'transform="translate({at + size / 3:.1f} -6) rotate(-90)"'
            if across
            else f'x="-6" y="{at + size / 3:.1f}"'
        )
        name = escaped(shortened(labels[position], page.longest))
        texts.append(f'<text {place} text-anchor="{"start" if across else "end"}">{name}</text>')
    return f'<g font-family="{escaped(MONOSPACE)}" font-size="{size:.1f}">{"".join(texts)}</g>'


def _titles(wide: float, high: float, page: _SvgLayout) -> str:
    factor = page.factor
    size, long = 12 * factor, 150 * factor
    down = "← query: attending token" if high >= long else "query"
    across = "key: attended token →" if wide + _RIGHT * factor >= long else "key"
    return (
        f'<text x="0" y="{high + 22 * factor:.1f}" font-size="{px(size)}" fill="{LIGHT.key}">{across}</text>'
        f'<text transform="translate({18 * factor - page.left:.1f} {high:.1f}) rotate(-90)" font-size="{px(size)}" '
        f'fill="{LIGHT.query}">{down}</text>'
    )


def _bar(wide: float, scale: _SvgScale, factor: float, tall: float) -> str:
    stops = scale.stops
    gradient = "".join(
        f'<stop offset="{1 - step / (len(stops) - 1):.3f}" stop-color="{colour}"/>'
        for step, colour in reversed(list(enumerate(stops)))
    )
    size, box = 11 * factor, 12 * factor
    at, beside = wide + 24 * factor, wide + 42 * factor
    ticks = "".join(
        f'<text x="{beside:.1f}" y="{tall * (1 - tick) + 4 * factor:.1f}" font-size="{px(size)}">{text}</text>'
        for tick, text in scale.ticks.items()
    )
    return (
        f'<defs><linearGradient id="weight" x1="0" x2="0" y1="0" y2="1">{gradient}</linearGradient></defs>'
        f'<rect x="{at:.1f}" width="{box:.1f}" height="{tall:.1f}" fill="url(#weight)" stroke="{LIGHT.line}"/>{ticks}'
        f'<text x="{at:.1f}" y="{-10 * factor:.1f}" font-size="{px(size)}" fill="{LIGHT.muted}">{scale.title}</text>'
    )


def _hatching(wide: float, factor: float, tall: float) -> str:
    at, beside, box = wide + 24 * factor, wide + 42 * factor, 12 * factor
    return (
        f'<rect x="{at:.1f}" y="{tall + 18 * factor:.1f}" width="{box:.1f}" height="{box:.1f}" fill="none" '
        f'stroke="{LIGHT.line}"/>'
        f'<path d="M{at:.1f} {tall + 30 * factor:.1f}l{box:.1f} -{box:.1f}" stroke="{LIGHT.blocked}"/>'
        f'<text x="{beside:.1f}" y="{tall + 28 * factor:.1f}" font-size="{px(11 * factor)}">blocked</text>'
    )


def overlay_svg(
    trace: Trace, layer: int, head: int, position: int, *, smooth: bool = True, column: bool = False
) -> str:
    """Draw the picture as SVG, with one position's weights, patches blended if smooth, and blocked ones hatched."""
    stream = trace.attention_stream(None)
    tokens = trace.key_tokens(stream)
    picture = trace.seen.picture
    if picture is None or not tokens.patches:
        raise TraceError("weights over an image need a trace of an image with patches")
    tokens.require(position)
    weights = trace.weights(layer, head, stream).detach().double().cpu().numpy()
    line = weights[:, position] if column else weights[position]
    dots = laid_over(picture.numpy(), over_patches(line, tokens), smooth=smooth)
    return _document(trace, layer, head, position, dots, float(line.max()), column=column)


def _document(
    trace: Trace,
    layer: int,
    head: int,
    position: int,
    dots: UInt8[np.ndarray, "high wide 3"],
    most: float,
    *,
    column: bool,
) -> str:
    high, wide, _ = dots.shape
    tokens = trace.query_tokens(trace.attention_stream(None))
    what = "weights on" if column else "weights of"
    title = f"{caption(trace, layer, head, trace.attention_stream(None))}: {what} {called(tokens, position)}"
    phrase = f"Fully lit: {weight_text(most)}, the largest weight. Dark: 0."
    below = [phrase, *textwrap.wrap(provenance_line(trace, layer, head, tokens), _LETTERS_A_LINE)]
    heading = textwrap.wrap(title, _TITLE_LETTERS * wide // 448) or [title]
    top = _MARGIN + _LINE * len(heading)
    height = top + _MARGIN + _LINE * (len(below) + 1) + high
    lines = _lines(below, top + _LINE + high)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 2 * _MARGIN}" height="{height}" '
        f'viewBox="0 0 {wide + 2 * _MARGIN} {height}" role="img" font-family="{escaped(SANS)}">'
        f"<title>{escaped(title)}</title>"
        f'<rect width="100%" height="100%" fill="{LIGHT.background}"/>'
        f'<g font-size="14" fill="{LIGHT.ink}">{_lines(heading, _MARGIN - 8)}</g>'
        f'<image x="{_MARGIN}" y="{top}" width="{wide}" height="{high}" href="{png_data(dots)}"/>'
        f"{_hatched(blocked_patches(trace, layer, head, position, column=column), wide, high, top)}"
        f"{_frame(tokens, position, wide, high, top)}"
        f'<g font-size="10" fill="{LIGHT.muted}">{lines}</g></svg>\n'
    )


def _lines(said: Sequence[str], above: int) -> str:
    return "".join(
        f'<text x="{_MARGIN}" y="{above + _LINE * row}">{escaped(one)}</text>' for row, one in enumerate(said, start=1)
    )


def _hatched(blocked: Bool[np.ndarray, "row column"], wide: int, high: int, top: int) -> str:
    rows, columns = blocked.shape
    lines = svg_path(blocked, (wide / columns, high / rows), corner=(_MARGIN, top))
    return f'<path d="{lines}" fill="none" stroke="{LIGHT.muted}" stroke-width="1.5"/>' if lines else ""


def _frame(tokens: Tokens, position: int, wide: int, high: int, above: int) -> str:
    place = tokens.patches.get(position)
    if place is None:
        return ""
    rows, columns = (max(one[axis] for one in tokens.patches.values()) + 1 for axis in (0, 1))
    width, height = wide / columns, high / rows
    left, top = _MARGIN + place[1] * width, above + place[0] * height
    return (
        f'<rect x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" height="{height:.2f}" rx="3" fill="none" '
        f'stroke="{LIGHT.query}" stroke-width="3"/>'
    )
