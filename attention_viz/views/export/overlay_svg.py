"""Print a picture overlaid with one position's weights, blocked patches hatched."""

import textwrap
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, UInt8

from attention_viz.errors import TraceError
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.seen.overlay import blocked_patches, called, laid_over, over_patches, png_data
from attention_viz.views.style.captions import caption, provenance_line
from attention_viz.views.style.hatching import svg_path
from attention_viz.views.style.theme import LIGHT, SANS
from attention_viz.views.style.wording import escaped

__all__ = ["overlay_svg"]

# The margin around the picture, and a line of letters, in pixels.
_MARGIN, _LINE = 16, 16
# So many letters fit beside each other in 448 pixels, small ones and those of the title.
_LETTERS_A_LINE, _TITLE_LETTERS = 88, 58


def overlay_svg(
    trace: Trace, layer: int, head: int, position: int, *, smooth: bool = True, column: bool = False
) -> str:
    """Draw the picture as SVG, with one position's weights in full colour.

    Blocked patches are hatched.

    Args:
        position: the looking position, from 0.
        smooth: blend patches; else each by itself.
    """
    stream = trace.stream(None)
    tokens = trace.key_tokens(stream)
    picture = trace.seen.picture
    if picture is None or not tokens.patches:
        raise TraceError("a picture with weights over it was asked for of a trace that is of no picture with patches")
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
    tokens = trace.query_tokens(trace.stream(None))
    what = "What looks at" if column else "What is looked at from"
    title = f"{caption(trace, layer, head, trace.stream(None))}: {what} {called(tokens, position)}"
    phrase = f"Full colour: {most:.3f}, the largest weight. Grey: 0."
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
        f"{_hatch(blocked_patches(trace, layer, head, position, column=column), wide, high, top)}"
        f"{_frame(tokens, position, wide, high, top)}"
        f'<g font-size="10" fill="{LIGHT.muted}">{lines}</g></svg>\n'
    )


def _lines(said: Sequence[str], above: int) -> str:
    return "".join(
        f'<text x="{_MARGIN}" y="{above + _LINE * row}">{escaped(one)}</text>' for row, one in enumerate(said, start=1)
    )


def _hatch(blocked: Bool[np.ndarray, "row column"], wide: int, high: int, top: int) -> str:
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
