"""A trace's image, video or audio, packed beside the weights."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Region, Tokens
    from attention_viz.trace.trace import Trace

_CROSS = "cross"
# The longest side of an image that stands small beside words, in pixels.
_SMALL = 256


@dataclass(frozen=True)
class _Name:
    name: str


def packed_seen(trace: "Trace", packet: Packet) -> dict[str, Any]:
    """Pack an image or audio; return its planes' offsets."""
    if (picture := trace.seen.picture) is not None:
        film = film_of(trace)
        pixels = (
            picture.contiguous().numpy() if film is None else film.pixels([one.numpy() for one in trace.seen.pictures])
        )
        rows, columns, _ = pixels.shape
        found = {"rows": rows, "columns": columns, "at": packet.add(pixels.tobytes())}
        return {"picture": found if film is None else {**found, "film": film.header()}}
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
class Film:
    """The frames of a video, each the first of those that the model reads at one time.

    Attributes:
        down: rows of patches of a frame.
        across: columns of patches of a frame.
        per_row: frames per row of the film.
        times: seconds of the first and the last frame that is read at each time.
        frames: each shown frame's number.
    """

    down: int
    across: int
    per_row: int
    times: tuple[tuple[float, float], ...]
    frames: tuple[int, ...]

    def place(self, region: "Region") -> tuple[int, int]:
        """Return a region's row and column on the film, in patches."""
        row, column = divmod(self.frames.index(region.picture), self.per_row)
        return (
            row * (self.down + 1) + round(region.top * self.down),
            column * (self.across + 1) + round(region.left * self.across),
        )

    def header(self) -> dict[str, Any]:
        """Return the film for the header, without its pixels."""
        return {"down": self.down, "across": self.across, "perRow": self.per_row, "times": [*map(list, self.times)]}

    def pixels(self, pictures: "list[NDArray[np.uint8]]") -> UInt8[np.ndarray, "row column 3"]:
        """Return the film in red, green and blue, black between frames."""
        shown = [pictures[number] for number in self.frames]
        high, wide = (math.ceil(shown[0].shape[axis] / count) for axis, count in enumerate((self.down, self.across)))
        rows, per_row = -(-len(shown) // self.per_row), self.per_row
        size = (rows * (self.down + 1) - 1) * high, (per_row * (self.across + 1) - 1) * wide
        film = np.zeros((*size, 3), np.uint8)
        for at, frame in enumerate(shown):
            top, left = (at // per_row) * (self.down + 1) * high, (at % per_row) * (self.across + 1) * wide
            sized = _resized(frame, self.down * high, self.across * wide)
            film[top : top + self.down * high, left : left + self.across * wide] = sized
        return film


def film_of(trace: "Trace") -> Film | None:
    """Return a trace's film; None without a video, or if its regions form no grid that is the same at all times."""
    if not trace.seen.times:
        return None
    tokens = (trace.query_tokens(stream).regions for stream in trace.attention_streams)
    regions = next((found for several in tokens if (found := [one for one in several if one is not None])), [])
    frames = sorted({one.picture for one in regions})
    edges = {(one.top, one.left) for one in regions}
    tops, lefts = ({edge[axis] for edge in edges} for axis in (0, 1))
    down, across = len(tops), len(lefts)
    whole = {(number, *edge) for number in frames for edge in edges}
    found = [(one.picture, one.top, one.left) for one in regions]
    if not regions or len(found) != len(whole) or {*found} != whole or len(edges) != down * across:
        return None
    spans = {one.picture: (one.start, one.end) for one in regions}
    times = tuple(
        (start, end) for start, end in map(spans.__getitem__, frames) if start is not None and end is not None
    )
    if len(times) != len(frames):
        return None
    height, width, _ = trace.seen.pictures[0].shape
    per_row = _per_row(len(frames), height * (1 + 1 / down), width * (1 + 1 / across))
    return Film(down, across, per_row, times, tuple(frames))


def on_film(trace: "Trace", tokens: "Tokens") -> "Tokens":
    """Return the tokens with their places on the film, if there is one."""
    if not any(tokens.regions) or (film := film_of(trace)) is None:
        return tokens
    place = tuple(None if one is None else film.place(one) for one in tokens.regions)
    return replace(tokens, place=place)


def _per_row(count: int, height: float, width: float) -> int:
    """Return how many frames a row has, so that the film is nearly square."""
    return min(range(1, count + 1), key=lambda wide: abs(math.log(wide * width / (-(-count // wide) * height))))


def _resized(frame: NDArray[np.uint8], high: int, wide: int) -> NDArray[np.uint8]:
    from PIL import Image

    if frame.shape[:2] == (high, wide):
        return frame
    return np.array(Image.fromarray(frame).resize((wide, high), Image.Resampling.BILINEAR))
