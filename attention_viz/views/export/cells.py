"""Draw a small image as rectangles, which stay sharp at any size and in any program."""

import base64
import io
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy
from jaxtyping import Shaped
from PIL import Image

from attention_viz.views.export.sheet import px

__all__ = ["cells_of"]

# Rectangles at most. A larger image stays one, of so many pixels at least, since programs blur small ones.
_MOST, _SHARP = 20_000, 1200
# How far a rectangle goes on under its neighbours, in pixels.
_SEAM = 0.2
_OF_GROUP = ("transform", "opacity", "clip-path")
# No image of ours has more pixels.
_LARGEST = 2**26


def cells_of(attributes: dict[str, str]) -> Iterator[Element]:
    """Yield an image as rectangles if it has cells of one colour, else as it is.

    Without its bytes in the document, there is nothing to yield.
    """
    source = attributes.get("xlink:href", "")
    if not source:
        return
    with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])), formats=["PNG"]) as image:
        if image.width * image.height > _LARGEST:
            return
        pixels = numpy.asarray(image.convert("RGBA"))
    cells = attributes.pop("image-rendering", "") in ("pixelated", "crisp-edges", "optimizeSpeed")
    rows, columns = _starts(pixels, 0), _starts(pixels, 1)
    # A photograph has no rows and columns that are the same as the one before.
    few = (cells or 4 * len(rows) * len(columns) <= pixels[..., 0].size) and len(rows) * len(columns) <= 16 * _MOST
    place = [float(attributes.get(name, 0)) for name in ("x", "y", "width", "height")]
    made = _rectangles(pixels, rows, columns, place) if few else None
    if made is not None:
        group = Element("g", {name: one for name, one in attributes.items() if name in _OF_GROUP})
        group.extend(made)
        yield group
    else:
        yield Element("image", {**attributes, "xlink:href": _enlarged(pixels)} if cells else attributes)


def _rectangles(
    pixels: Shaped[numpy.ndarray, "row column 4"], rows: list[int], columns: list[int], place: list[float]
) -> list[Element] | None:
    """Return a rectangle per run of equal cells in a row; None if there are too many."""
    left, top, width, height = place
    high, wide, _ = pixels.shape
    few = pixels[rows][:, columns]
    across = [left + one / wide * width for one in (*columns, wide)]
    down = [top + one / high * height for one in (*rows, high)]
    found: list[Element] = []
    for row, line in enumerate(few):
        starts = [0, *(numpy.flatnonzero((line[1:] != line[:-1]).any(axis=1)) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
            alpha = int(line[start, 3])
            if alpha == 0:
                continue
            # Under opaque neighbours, which are drawn later, so that no light falls between them.
            beside = _SEAM * (alpha == 255 and end < len(line) and line[end, 3] == 255)
            below = _SEAM * (alpha == 255 and row + 1 < len(few) and bool((few[row + 1, start:end, 3] == 255).all()))
            box = {"x": px(across[start]), "y": px(down[row])}
            box["width"] = px(across[end] - across[start] + beside)
            box["height"] = px(down[row + 1] - down[row] + below)
            box["fill"] = "#" + bytes(line[start, :3].tolist()).hex()
            found.append(Element("rect", box | ({"fill-opacity": f"{alpha / 255:.3g}"} if alpha < 255 else {})))
        if len(found) > _MOST:
            return None
    return found


def _starts(pixels: Shaped[numpy.ndarray, "row column 4"], axis: int) -> list[int]:
    """Return where rows or columns differ from the one before."""
    changes = numpy.diff(pixels.astype(numpy.int16), axis=axis).any(axis=(1 - axis, 2))
    return [0, *(numpy.flatnonzero(changes) + 1).tolist()]


def _enlarged(pixels: Shaped[numpy.ndarray, "row column 4"]) -> str:
    """Repeat each pixel until programs that blur small images show it sharp."""
    times = max(1, -(-_SHARP // max(pixels.shape[:2])))
    content = io.BytesIO()
    Image.fromarray(pixels.repeat(times, 0).repeat(times, 1)).save(content, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
