"""A trace's image or audio, packed beside the weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

_CROSS = "cross"


@dataclass(frozen=True)
class _Name:
    name: str


def packed_seen(trace: "Trace", packet: Packet) -> dict[str, Any]:
    """Pack an image or audio; return its planes' offsets."""
    if (picture := trace.seen.picture) is not None:
        rows, columns, _ = picture.shape
        return {"picture": {"rows": rows, "columns": columns, "at": packet.add(picture.contiguous().numpy().tobytes())}}
    return {"sound": _sound(trace, packet)} if trace.seen.sound is not None else {}


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
