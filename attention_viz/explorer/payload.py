"""A trace as one piece of bytes for the browser: its tokens, its blocked cells, and every weight in 12 bits.

The layout is: the length of the header as an unsigned 32-bit number, little-endian; the header, JSON in UTF-8; then the
planes one after another, each deflated on its own, so that the browser can read one layer without the others. The
header says at which offset after it a plane begins and how long it is.

A weight travels as the number of the interval it lies in, of which there are `LEVELS` between 0 and 1, and is drawn as
the middle of it: nothing is off by more than `ERROR`. Three digits after the point are rounded where intervals meet, so
a weight written with three digits on the screen reads as in the trace. 0 and 1 are numbers of their own, and exact.
The numbers are split in two planes a layer, the upper eight bits (mostly runs of zero) and the lower four
(close to noise, two in a byte), and written key by key rather than query by query: what many queries look at makes
long runs.
"""

import json
import struct
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, UInt16
from numpy.typing import NDArray

from attention_viz.analysis.blocks import row_slices, weights_of
from attention_viz.errors import TraceError

if TYPE_CHECKING:
    from attention_viz.operation.attention import Attention
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Layer, Trace

__all__ = ["ERROR", "LEVELS", "MOST_CELLS", "MOST_WEIGHTS", "Choice", "pack"]

# Intervals between 0 and 1: four to a thousandth. Twelve bits would hold 4,096 numbers.
LEVELS = 4000
# How far a weight on the screen may be from the trace: half an interval, and float32's own rounding.
ERROR = 0.5 / LEVELS + 1e-7

# The largest head and the largest trace that a browser can hold, at two bytes a weight, and still answer the pointer.
MOST_CELLS = 4096 * 4096
MOST_WEIGHTS = 16 * MOST_CELLS

# Sums of rows are sent apart, in finer steps, because adding up rounded weights would show 0.998 for 1.
_SUM_STEPS = 65535


@dataclass(frozen=True)
class Choice:
    """The head on the screen.

    Attributes:
        stream: "encoder", "decoder" or "cross".
        layer: from 0.
        head: from 0.
    """

    stream: str
    layer: int
    head: int


@dataclass
class _Body:
    """The planes behind the header; a plane that is already there is not written twice."""

    parts: list[bytes] = field(default_factory=list[bytes])
    places: dict[bytes, tuple[int, int]] = field(default_factory=dict[bytes, tuple[int, int]])
    length: int = 0

    def add(self, plane: bytes) -> tuple[int, int]:
        """Deflate a plane and tell where it lies: (offset, length)."""
        # Run lengths alone (Z_RLE) come out smaller here than a search for repeats, and thirty times as fast.
        compressor = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
        packed = compressor.compress(plane) + compressor.flush()
        if packed not in self.places:
            self.places[packed] = (self.length, len(packed))
            self.parts.append(packed)
            self.length += len(packed)
        return self.places[packed]


def pack(trace: "Trace", *, choice: Choice | None = None) -> bytes:
    """The trace as bytes for the browser component; equal traces give equal bytes.

    Args:
        trace: what to show.
        choice: the head to open on. Leave it out where the host tells the component through the channel
            (`attention_viz.explorer.source`), so that a choice doesn't change the bytes.

    Raises:
        TraceError: a head has weights that are not numbers, or there are more than a browser can hold.
    """
    _refuse_large(trace)
    body, masks, axes = _Body(), _Masks(), _Axes(_generated(trace))
    streams = [
        {
            "name": stream,
            "queries": axes.add(trace.query_tokens(stream)),
            "keys": axes.add(trace.key_tokens(stream)),
            "layers": [
                _layer(layer, f"layer {number} of the {stream}", body, masks)
                for number, layer in enumerate(trace.layers[stream])
            ],
        }
        for stream in trace.streams
    ]
    header = {
        "version": 1,
        "model": trace.provenance.model,
        "edits": list(trace.provenance.edits),
        "reading": _reading(trace),
        "levels": LEVELS,
        "error": ERROR,
        "sum_steps": _SUM_STEPS,
        "choice": None if choice is None else asdict(choice),
        "axes": axes.entries,
        "masks": masks.entries,
        "streams": streams,
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"".join([struct.pack("<I", len(text)), text, *body.parts])


def _reading(trace: "Trace") -> dict[str, Any] | None:
    """How the numbers are to be called where they aren't the weights that ran."""
    from attention_viz.analysis.readings import READINGS

    found = READINGS.get(trace.provenance.reading)
    return None if found is None or found.function is None else {"label": found.label, "together": not found.per_head}


def _refuse_large(trace: "Trace") -> None:
    """By shapes alone, before any weight is computed: a small file may stand for more weights than memory holds."""
    total = 0
    for stream in trace.streams:
        for number, layer in enumerate(trace.layers[stream]):
            heads, queries, keys = layer.attention.shape
            total += heads * queries * keys
            if queries * keys > MOST_CELLS:
                raise TraceError(
                    f"a head of layer {number} of the {stream} has {queries:,} queries × {keys:,} keys; the explorer "
                    f"draws at most {MOST_CELLS:,} cells a head, which are {int(MOST_CELLS**0.5):,} tokens"
                )
    if total > MOST_WEIGHTS:
        raise TraceError(
            f"the trace has {total:,} weights and the explorer draws at most {MOST_WEIGHTS:,}; "
            "record fewer layers or a shorter text"
        )


def _layer(layer: "Layer", name: str, body: _Body, masks: "_Masks") -> dict[str, Any]:
    call = layer.attention
    heads, queries, keys = call.shape
    blocked, steps, sums = _blocked(call), np.empty((heads, keys, queries), np.uint16), list[np.ndarray]()
    # Some rows at a time: of a long text the weights take far more room than what is made of them.
    for rows in row_slices(queries, heads * keys):
        weights = weights_of(call if rows == slice(0, queries) else call.rows(rows))
        _refuse_broken(weights, name)
        steps[:, :, rows] = _steps(weights, None if blocked is None else blocked[:, rows]).swapaxes(1, 2)
        sums.append(_sums(weights))
    high, low = _planes(steps)
    return {
        "label": layer.label,
        "heads": heads,
        "blocked": masks.add(blocked, body),
        "high": body.add(high),
        "low": body.add(low),
        "sums": body.add(np.concatenate(sums, axis=1).tobytes()),
    }


def _refuse_broken(weights: Float[np.ndarray, "head query key"], name: str) -> None:
    """Drawn as zeros they would be a picture of something that was never computed."""
    broken = np.flatnonzero(~np.isfinite(weights).all(axis=(1, 2)))
    if broken.size:
        raise TraceError(f"head {broken[0]} of {name} has weights that are not numbers; it can't be drawn")


def _blocked(call: "Attention") -> Bool[np.ndarray, "heads query key"] | None:
    """True where a query may not look; one slice for all heads where they agree, None where nothing is blocked."""
    if call.allowed is None:
        return None
    queries, keys = call.shape[-2:]
    allowed: NDArray[np.bool_] = call.allowed.detach().cpu().numpy()
    lead = allowed.shape[-3] if allowed.ndim > 2 else 1
    blocked = ~np.broadcast_to(allowed.reshape(lead, *allowed.shape[-2:]), (lead, queries, keys))
    if not blocked.any():
        return None
    heads = call.shape[0]
    return np.repeat(blocked, heads // lead, axis=0) if 1 < lead < heads else blocked


def _steps(
    weights: Float[np.ndarray, "head query key"], blocked: Bool[np.ndarray, "heads query key"] | None
) -> UInt16[np.ndarray, "head query key"]:
    """Weights as the numbers of their intervals: n for ((n - 1) / LEVELS, n / LEVELS], 0 for 0, LEVELS + 1 for 1.

    What is nearer to 0 than `ERROR` counts as 0, and so do blocked cells.
    """
    exact = weights.clip(0, 1).astype(np.float64)
    steps = np.ceil(exact * LEVELS).astype(np.uint16)
    steps[exact <= 0.5 / LEVELS] = 0
    steps[exact == 1] = LEVELS + 1
    return steps if blocked is None else np.where(blocked, np.uint16(0), steps)


def _planes(steps: UInt16[np.ndarray, "head key query"]) -> tuple[bytes, bytes]:
    """The upper eight bits of each number, and the lower four, two numbers in a byte (the first one below)."""
    flat = steps.ravel()
    high, low = (flat >> 4).astype(np.uint8).tobytes(), (flat & 15).astype(np.uint8)
    low = np.append(low, np.zeros(low.size % 2, np.uint8))
    return high, (low[0::2] | low[1::2] << 4).tobytes()


def _sums(weights: Float[np.ndarray, "head query key"]) -> UInt16[np.ndarray, "head query"]:
    """What each row sums to, as little-endian 16-bit numbers of 65,535ths."""
    sums = weights.sum(axis=2, dtype=np.float64).clip(0, 1)
    return np.rint(sums * _SUM_STEPS).astype("<u2")


class _Axes:
    """The rows of tokens, each told once however many streams share it."""

    def __init__(self, generated: int) -> None:
        self.entries: list[dict[str, Any]] = []
        self._generated = generated

    def add(self, tokens: "Tokens") -> int:
        entry: dict[str, Any] = {
            "labels": list(tokens.labels),
            "special": [place for place, special in enumerate(tokens.special) if special],
            "padding": [place for place, padding in enumerate(tokens.padding) if padding],
        }
        if set(tokens.spelling) != {"unknown"}:
            entry["spelling"] = tokens.spelling[0] if len(set(tokens.spelling)) == 1 else list(tokens.spelling)
        if 1 in tokens.sentence:
            entry["sentences"] = [[i for i, one in enumerate(tokens.sentence) if one == which] for which in (0, 1)]
        if self._generated:
            entry["generated"] = list(range(len(tokens) - self._generated, len(tokens)))
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)


def _generated(trace: "Trace") -> int:
    """How many tokens at the end of a decoder's text are its own; what an encoder–decoder says is an axis apart."""
    return trace.provenance.generated if trace.streams == ("decoder",) else 0


class _Masks:
    """Which cells are blocked, each pattern told once however many layers and heads share it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def add(self, blocked: Bool[np.ndarray, "heads query key"] | None, body: _Body) -> list[int] | None:
        """The number of each head's pattern, or one number for all of them."""
        return None if blocked is None else [self._add(one, body) for one in blocked]

    def _add(self, blocked: Bool[np.ndarray, "query key"], body: _Body) -> int:
        queries, keys = blocked.shape
        causal = ~np.tri(queries, keys, k=keys - queries, dtype=bool)
        if np.array_equal(blocked, causal):
            entry: dict[str, Any] = {"kind": "causal", "queries": queries, "keys": keys}
        else:
            bits = np.packbits(blocked.T.ravel(), bitorder="little").tobytes()
            entry = {"kind": "bits", "queries": queries, "keys": keys, "at": body.add(bits)}
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)
