"""A trace's image or audio, packed beside the weights."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
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
        rows, columns, _ = picture.shape
        return {"picture": {"rows": rows, "columns": columns, "at": packet.add(picture.contiguous().numpy().tobytes())}}
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
