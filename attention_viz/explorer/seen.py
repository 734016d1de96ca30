"""A trace's image, video or audio, packed beside the weights."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

from attention_viz.analysis.measured import word_stream
from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Region, Tokens
    from attention_viz.trace.trace import Trace

_CROSS = "cross"
# The longest side of an image that stands small beside words, in pixels.
_SMALL = 256
# How many times as broad as high images are laid out beside each other, if they can be.
_BROAD = 2


@dataclass(frozen=True)
class _Name:
    name: str


def packed_seen(trace: "Trace", packet: Packet) -> dict[str, Any]:
    """Pack an image or audio; return its planes' offsets."""
    if (picture := trace.seen.picture) is not None:
        sheet = sheet_of(trace)
        pictures = [one.contiguous().numpy() for one in trace.seen.pictures]
        pixels = picture.contiguous().numpy() if sheet is None else sheet.pixels(pictures)
        rows, columns, _ = pixels.shape
        found = {"rows": rows, "columns": columns, "at": packet.add(pixels.tobytes())}
        return {"picture": found if sheet is None else {**found, "sheet": sheet.header()}}
    return {"sound": _sound(trace, packet)} if trace.seen.sound is not None else {}


def pictures_beside(trace: "Trace", tokens: "Tokens") -> dict[str, Any] | None:
    """Return the images beside a text, small, and each position's rectangle in them; None without images or words."""
    if not trace.seen.pictures or not tokens.patches or len(tokens.patches) == sum(not one for one in tokens.special):
        return None
    boxes = {at: box for at in range(len(tokens)) if (box := _box(tokens, at)) is not None}
    return {"images": [_small(one.contiguous().numpy()) for one in trace.seen.pictures], "boxes": boxes}


def _box(tokens: "Tokens", at: int) -> Sequence[float] | None:
    """Return the image's number and the edges, in shares: top, left, bottom and right."""
    if (found := tokens.regions[at]) is not None:
        return found.picture, *(round(one, 6) for one in (found.top, found.left, found.bottom, found.right))
    if (place := tokens.patches.get(at)) is None:
        return None
    down, across = (max(one[axis] for one in tokens.patches.values()) + 1 for axis in (0, 1))
    row, column = place
    return 0, row / down, column / across, (row + 1) / down, (column + 1) / across


def _small(pixels: Any) -> dict[str, Any]:
    from PIL import Image

    image, content = Image.fromarray(pixels), io.BytesIO()
    image.thumbnail((_SMALL, _SMALL))
    image.save(content, "PNG")
    rows, columns, _ = pixels.shape
    return {"rows": rows, "columns": columns, "png": base64.b64encode(content.getvalue()).decode("ascii")}


def _sound(trace: "Trace", packet: Packet) -> dict[str, Any]:
    from attention_viz.analysis.speech import BANDS, spectrogram

    assert trace.seen.sound is not None
    samples, rate = trace.seen.sound.detach().float().numpy(), trace.seen.rate
    mel = np.rint(spectrogram(samples, rate) * 255).astype(np.uint8)
    loud = np.rint(samples.clip(-1, 1) * 32767).astype("<i2")
    words, aligning, follows = _words(trace)
    return {
        "rate": rate,
        "count": len(samples),
        "at": packet.add(loud.tobytes()),
        "bands": BANDS,
        "columns": len(mel),
        "mel": packet.add(mel.tobytes()),
        "words": words,
        "aligning": aligning,
        "follows": follows,
    }


def _words(trace: "Trace") -> tuple[list[dict[str, Any]], list[list[int]], list[list[float]]]:
    """Return spoken words with times, the timing heads, and all heads with their measure; none without speech."""
    from attention_viz.analysis.word_times import said_words, word_times
    from attention_viz.errors import TraceError

    if _CROSS not in trace.attention_streams:
        return [], [], []
    try:
        said, table = said_words(trace), word_times(_Name(trace.provenance.model), trace)
    except TraceError:  # nothing is said, or more than there are frames
        return [], [], []
    times = zip(table["start"].tolist(), table["end"].tolist(), strict=True)
    words = [
        {"text": word, "rows": list(rows), "start": _known(start), "end": _known(end)}
        for (word, rows), (start, end) in zip(said, times, strict=True)
    ]
    heads = [[int(layer), int(head)] for layer, head, _ in table.attrs["heads"]]
    follows = [[int(layer), int(head), round(float(share), 4)] for layer, head, share in table.attrs["all"]]
    return words, heads, follows


def _known(second: float) -> float | None:
    return None if np.isnan(second) else float(second)


@dataclass(frozen=True)
class SheetPanel:
    """One image on a sheet, a frame of a video, or an image as the model reads it reduced.

    Attributes:
        picture: the number of its image or frame.
        thumbnail: whether its positions read a reduced copy of the image.
        row: its first row of patches on the sheet.
        column: its first column.
        down: its rows of patches.
        across: its columns of patches.
        name: what its corner says.
        where: the same in a sentence.
    """

    picture: int
    thumbnail: bool
    row: int
    column: int
    down: int
    across: int
    name: str
    where: str

    def cell(self, region: "Region") -> tuple[int, int]:
        """Return a region's row and column on the sheet."""
        row, column = _cell(region, self.down, self.across)
        return self.row + row, self.column + column

    def of(self, region: "Region") -> bool:
        """Return whether it shows a region."""
        return (region.picture, region.thumbnail) == (self.picture, self.thumbnail)


@dataclass(frozen=True)
class ImageSheet:
    """The images beside a text, or the frames of a video, with a patch's gap between them.

    Attributes:
        video: whether they are frames, each the first of those that the model reads at one time.
        together: whether the model reads several frames at one time.
    """

    panels: tuple[SheetPanel, ...]
    video: bool = False
    together: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return max(one.row + one.down for one in self.panels), max(one.column + one.across for one in self.panels)

    def place(self, region: "Region") -> tuple[int, int]:
        """Return a region's row and column on the sheet, in patches."""
        return next(one for one in self.panels if one.of(region)).cell(region)

    def named(self, region: "Region") -> str:
        """Name a region in a sentence: "patch 0, 1 in image 2", by row and column in its own image."""
        panel = next(one for one in self.panels if one.of(region))
        row, column = _cell(region, panel.down, panel.across)
        return f"patch {row}, {column} {panel.where}"

    def header(self) -> dict[str, Any]:
        """Return the sheet for the header, without its pixels."""
        return {"panels": [asdict(one) for one in self.panels], "video": self.video, "together": self.together}

    def pixels(self, pictures: "list[NDArray[np.uint8]]") -> UInt8[np.ndarray, "row column 3"]:
        """Return the sheet in red, green and blue, black between images."""
        sizes = [(pictures[one.picture].shape, one) for one in self.panels]
        high = min(math.ceil(shape[0] / one.down) for shape, one in sizes)
        wide = min(math.ceil(shape[1] / one.across) for shape, one in sizes)
        rows, columns = self.size
        sheet = np.zeros((rows * high, columns * wide, 3), np.uint8)
        for one in self.panels:
            top, left, down, across = one.row * high, one.column * wide, one.down * high, one.across * wide
            sheet[top : top + down, left : left + across] = _resized(pictures[one.picture], down, across)
        return sheet


def sheet_of(trace: "Trace") -> ImageSheet | None:
    """Return the sheet of several images, of tiles beside a reduced copy, or of a video's frames.

    None if one grid of patches says it all, or if an image's regions form no grid.
    """
    tokens = trace.query_tokens(word_stream(trace))
    regions = [one for one in tokens.regions if one is not None]
    pairs = zip(tokens.regions, tokens.place, strict=True)
    if not trace.seen.pictures or all(place is not None for one, place in pairs if one is not None):
        return None
    grids = dict[tuple[int, bool], tuple[int, int]]()
    for key in sorted({(one.picture, one.thumbnail) for one in regions}):
        if (grid := _grid(tuple(one for one in regions if (one.picture, one.thumbnail) == key))) is None:
            return None
        grids[key] = grid
    if any(number >= len(trace.seen.pictures) for number, _ in grids):
        return None
    spans = {one.picture: (one.start, one.end) for one in regions}
    times = {key: (start, end) for key, (start, end) in spans.items() if start is not None and end is not None}
    if trace.seen.times and (times.keys() != spans.keys() or len({*grids.values()}) > 1):
        return None
    names = [_name_of(*key, times, many=len(trace.seen.pictures) > 1) for key in grids]
    height, width, _ = trace.seen.pictures[0].shape
    down, across = next(iter(grids.values()))
    panels = _laid_out([*grids.values()], height / down, width / across, 1 if times else _BROAD)
    return ImageSheet(
        tuple(SheetPanel(*key, *panel, *name) for key, panel, name in zip(grids, panels, names, strict=True)),
        bool(times),
        any(start < end for start, end in times.values()),
    )


def on_sheet(trace: "Trace", tokens: "Tokens") -> "Tokens":
    """Return the tokens with their places on the sheet, if there is one; without places if they form another grid."""
    if (sheet := sheet_of(trace)) is None:
        return tokens
    regions = [one for one in tokens.regions if one is not None]
    cells = [(one, _grid(tuple(region for region in regions if one.of(region)))) for one in sheet.panels]
    fits = bool(regions) and all(grid == (one.down, one.across) for one, grid in cells)
    place = tuple(sheet.place(one) if one is not None and fits else None for one in tokens.regions)
    return replace(tokens, place=place)


def _name_of(picture: int, thumbnail: bool, times: Mapping[int, tuple[float, float]], *, many: bool) -> tuple[str, str]:
    """Return a panel's name at its corner, and in a sentence."""
    if picture in times:
        return f"{times[picture][0]:.2f} s", f"at {times[picture][0]:.2f} s"
    image = f"image {picture + 1}" if many else "image"
    if thumbnail:
        return f"{image}, reduced", f"in {image if many else 'the image'} as a reduced copy"
    return image, f"in {image if many else 'the image'}"


@lru_cache(maxsize=64)
def _grid(regions: "tuple[Region, ...]") -> tuple[int, int] | None:
    """Return the rows and columns that put each region's middle into its own cell; None if there are none."""
    count = len(regions)
    for down in range(1, count + 1):
        if count % down == 0 and len({_cell(one, down, count // down) for one in regions}) == count:
            return down, count // down
    return None


def _cell(region: "Region", down: int, across: int) -> tuple[int, int]:
    return int((region.top + region.bottom) / 2 * down), int((region.left + region.right) / 2 * across)


def _laid_out(
    sizes: Sequence[tuple[int, int]], high: float, wide: float, broad: float
) -> list[tuple[int, int, int, int]]:
    """Return the row, column and size of each panel in patches, in rows that make the sheet `broad` times its height.

    Args:
        sizes: rows and columns of each.
        high: the height of a patch.
        wide: its width.
        broad: the wanted width, in heights.
    """

    def placed(per_row: int) -> list[tuple[int, int, int, int]]:
        found, top = list[tuple[int, int, int, int]](), 0
        for first in range(0, len(sizes), per_row):
            row, left = sizes[first : first + per_row], 0
            for down, across in row:
                found.append((top, left, down, across))
                left += across + 1
            top += max(down for down, _ in row) + 1
        return found

    def apart(panels: Sequence[tuple[int, int, int, int]]) -> float:
        down, across = (max(one[axis] + one[axis + 2] for one in panels) + 1 for axis in (0, 1))
        return abs(math.log(across * wide / (down * high) / broad))

    return min(map(placed, range(1, len(sizes) + 1)), key=apart)


def _resized(frame: NDArray[np.uint8], high: int, wide: int) -> NDArray[np.uint8]:
    from PIL import Image

    if frame.shape[:2] == (high, wide):
        return frame
    return np.array(Image.fromarray(frame).resize((wide, high), Image.Resampling.BILINEAR))
