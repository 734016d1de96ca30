"""A trace as bytes for the browser: tokens, blocked cells, 12-bit weights.

A weight is its interval's number, of `LEVELS` between 0 and 1, drawn as the middle: at most `ERROR` off. Intervals
meet where three digits round, so shown digits are exact; so are 0 and 1. A layer has two planes, the upper eight
bits (mostly zero) and the lower four (noisy, two per byte), key by key: runs are longer.

A long text's heads are pictures of sampled rows, and terms (`explorer.terms`): a file's chosen layers, the app's
shown head.
"""

import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, UInt16
from numpy.typing import NDArray

from attention_viz.analysis.blocks import row_slices, weights_of
from attention_viz.analysis.chat.table import segment_weights
from attention_viz.errors import TraceError
from attention_viz.explorer.axes import (
    PackedAxes,
    chances_of,
    generated_by,
    in_sight,
    packed_segments,
    segments_in_sight,
)
from attention_viz.explorer.limits import refuse_large
from attention_viz.explorer.mixers import LONGEST_HEAD, add_mixer, channels_id, comes_alone, longest_matrix
from attention_viz.explorer.packet import Packet, read_packet
from attention_viz.explorer.planes import ERROR, LEVELS, Masks, split_numbers, steps_of
from attention_viz.explorer.seen import packed_seen, sheet_of
from attention_viz.explorer.terms import add_head
from attention_viz.explorer.thumbnails import CODES, FAINTEST, Thumbnails
from attention_viz.trace.slots import has_target

if TYPE_CHECKING:
    from attention_viz.analysis.chat.table import SegmentAxis
    from attention_viz.analysis.findings.finding import Finding
    from attention_viz.operation.attention import Attention
    from attention_viz.trace.ahead import Progress
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Layer, Trace

__all__ = ["ERROR", "LEVELS", "LONG", "Choice", "LaterPictures", "id_of", "is_long", "pack"]

# With more weights than this a page waits for less where heads come as their terms: these are some ten megabytes.
LONG = 24_000_000

# Sums of rows are sent apart, in finer steps, because adding up rounded weights would show 0.998 for 1.
_SUM_STEPS = 65535


@dataclass(frozen=True)
class Choice:
    """The head on the screen.

    Attributes:
        stream: "encoder", "decoder", "cross" or "mixer".
        layer: its number, the model's own.
        head: from 0.
        query: the position of the pair's query; None for the head's own pair.
        key: that of its key.
    """

    stream: str
    layer: int
    head: int
    query: int | None = None
    key: int | None = None


def is_long(trace: "Trace", most: int | None = None) -> bool:
    """Return whether weights exceed the limit, `LONG` by default."""
    sizes = (layer.attention.shape for layers in trace.layers.values() for layer in layers)
    return sum(heads * queries * keys for heads, queries, keys in sizes) > (LONG if most is None else most)


def pack(
    trace: "Trace",
    *,
    choice: Choice | None = None,
    terms: Collection[tuple[str, int]] | None = None,
    findings: "Sequence[Finding] | None" = None,
    progress: "Progress | None" = None,
    hosted: bool = False,
    pictures: bool = True,
) -> bytes:
    """Pack the trace for the browser; equal traces give equal bytes.

    Args:
        choice: the opening head; omit with the channel (`attention_viz.explorer.source`), to keep bytes equal.
        terms: None for all weights; else pictures, with terms of these (stream, layer).
        progress: gets the share after each layer, 0 to 1.
        hosted: whether a host sends a mixer's heads one by one if there are many.
        pictures: whether a long text's small pictures are included; else `LaterPictures` has them.
    """
    if terms is None:
        refuse_large(trace)
    packet, masks = Packet(), Masks()
    axes = PackedAxes(generated_by(trace), sheet_of(trace), chances_of(trace))
    report, axis = _layers_done(trace, progress), segments_in_sight(trace)
    streams: list[dict[str, Any]] = [
        {
            "name": stream,
            "queries": axes.add(in_sight(trace, trace.query_tokens(stream)), stream),
            "keys": axes.add(in_sight(trace, trace.key_tokens(stream)), stream),
            **({"written": True} if stream == "cross" and has_target(trace.attention_streams) else {}),
            **_layers(
                trace, stream, terms, packet, masks, report, axis if stream == trace.text_stream else None, pictures
            ),
        }
        for stream in trace.attention_streams
    ]
    streams += _mixers(trace, packet, masks, axes, hosted=hosted)
    header = {
        "version": 1,
        "model": trace.provenance.model,
        "edits": list(trace.provenance.edits),
        "reading": _reading(trace),
        "levels": LEVELS,
        "error": ERROR,
        "sum_steps": _SUM_STEPS,
        "choice": None if choice is None else _checked(trace, choice),
        "findings": [asdict(one) for one in (_found(trace) if findings is None else findings)],
        "axes": axes.entries,
        "masks": masks.entries,
        "streams": streams,
    }
    if any("small" in layer or layer.get("channels") for stream in streams for layer in stream["layers"]):
        header["channels"] = channels_id(trace)
    if axis is not None:
        header["segments"] = packed_segments(trace, axis)
    if seen := packed_seen(trace, packet):
        header["seen"] = seen
    if terms is not None:
        header["long"] = {"id": packet.digest(axes.entries), "codes": CODES, "faintest": FAINTEST}
    return packet.pack(header)


class LaterPictures:
    """A long text's small pictures, a packet per layer, each made once. It keeps no trace alive."""

    def __init__(self) -> None:
        """Begin without pictures."""
        self._lock = threading.Lock()
        self._small: dict[str, Thumbnails] = {}
        self._packets: dict[tuple[str, int], bytes] = {}

    def packet(self, trace: "Trace", of: str, stream: str, layer: int) -> bytes:
        """Return a layer's packet; `of` is the trace's `id`."""
        with self._lock:
            if (stream, layer) not in self._packets:
                small = self._small.setdefault(stream, _small(trace, stream))
                packet = Packet()
                pictures = _pictures(small, trace.attention(layer, stream), packet)
                self._packets[stream, layer] = packet.pack({"of": of, "stream": stream, "layer": layer, **pictures})
            return self._packets[stream, layer]


def id_of(payload: bytes) -> str | None:
    """Return the id for `pack_head`; None with all weights."""
    found = read_packet(payload)[0].get("long")
    return None if found is None else found["id"]


def _layers_done(trace: "Trace", progress: "Progress | None") -> Callable[[], object]:
    done, of = itertools.count(1), sum(map(len, trace.layers.values()))
    return lambda: None if progress is None else progress(next(done) / of)


def _whole(
    trace: "Trace",
    stream: str,
    packet: Packet,
    masks: Masks,
    report: Callable[[], object],
    axis: "SegmentAxis | None",
) -> dict[str, Any]:
    return {
        "layers": [
            {
                **_layer(layer, f"layer {number} of the {stream}", packet, masks),
                **_number(trace, stream, number),
                **({} if axis is None else {"segments": _between(layer.attention, axis, packet)}),
            }
            for number, layer in _numbered(trace, stream, report)
        ]
    }


def _numbered(trace: "Trace", stream: str, report: Callable[[], object]) -> "Iterator[tuple[int, Layer]]":
    for number, layer in zip(trace.layer_numbers(stream), trace.layers[stream], strict=True):
        yield number, layer
        report()


def _number(trace: "Trace", stream: str, number: int) -> dict[str, int]:
    kept = trace.kept[stream]
    return {} if kept.whole and kept.counts else {"number": number}


def _checked(trace: "Trace", choice: Choice) -> dict[str, Any]:
    _ = trace.attention(choice.layer, choice.stream)
    return {name: value for name, value in asdict(choice).items() if value is not None}


def _layers(
    trace: "Trace",
    stream: str,
    terms: Collection[tuple[str, int]] | None,
    packet: Packet,
    masks: Masks,
    report: Callable[[], object],
    axis: "SegmentAxis | None",
    pictures: bool,
) -> dict[str, Any]:
    if terms is None:
        return _whole(trace, stream, packet, masks, report, axis)
    small = _small(trace, stream)
    layers = [
        {
            "label": layer.label,
            **_number(trace, stream, number),
            "heads": layer.attention.shape[0],
            "blocked": None if layer.attention.allowed is None else [],
            **(_pictures(small, layer.attention, packet) if pictures else {}),
            "terms": {
                head: add_head(layer.attention.head(head), packet, masks, axis)
                for head in range(layer.attention.shape[0])
                if (stream, number) in terms
            },
        }
        for number, layer in _numbered(trace, stream, report)
    ]
    from attention_viz.analysis.findings.findings import searched_rows

    searched = searched_rows(trace, stream)
    rows = {"sampled": len(small.rows)} | ({} if searched is None else {"searched": searched})
    return {"layers": layers, **rows, "side": small.side}


def _small(trace: "Trace", stream: str) -> Thumbnails:
    calls = [layer.attention for layer in trace.layers[stream]]
    sides = trace.query_tokens(stream), trace.key_tokens(stream)
    special = _special(in_sight(trace, sides[0])), _special(in_sight(trace, sides[1]))
    return Thumbnails(calls[0].shape[-2:], sum(call.shape[0] for call in calls), special)


def _mixers(trace: "Trace", packet: Packet, masks: Masks, axes: PackedAxes, *, hosted: bool) -> list[dict[str, Any]]:
    longest = longest_matrix(trace.mixers)
    found = list[dict[str, Any]]()
    for stream, layers in trace.mixers.items():
        tokens = in_sight(trace, trace.query_tokens(stream))
        drawn, alone = len(tokens) <= longest, hosted and comes_alone(trace.mixers, stream)
        entries = [
            {
                "number": number,
                **add_mixer(layer, f"layer {number} of the {stream}", packet, masks, drawn=drawn, alone=alone),
            }
            for number, layer in zip(trace.layer_numbers(stream), layers, strict=True)
            # Of a file with weights alone, nothing is known of what arrives in all channels.
            if layer.mixer.per == "head" or layer.mixer.value.shape[-1]
        ]
        if not entries:
            continue
        place = axes.add(tokens, stream)
        found.append(
            {
                "name": stream,
                "queries": place,
                "keys": place,
                "signed": True,
                "longest": max(longest, LONGEST_HEAD * alone),
                "layers": entries,
            }
        )
    return found


def _special(tokens: "Tokens") -> set[int]:
    return {place for place, both in enumerate(zip(tokens.special, tokens.padding, strict=True)) if any(both)}


def _between(call: "Attention", axis: "SegmentAxis", packet: Packet) -> tuple[int, int]:
    return packet.add_numbers(segment_weights(call, axis).float().numpy())


def _pictures(pictures: Thumbnails, call: "Attention", packet: Packet) -> dict[str, tuple[int, int]]:
    whole, shown = pictures.of(call)
    without = {} if shown is None else {"plain": packet.add(shown.tobytes())}
    return {"thumbnails": packet.add(whole.tobytes()), **without}


def _found(trace: "Trace") -> "tuple[Finding, ...]":
    from attention_viz.circuits.findings import findings

    return findings(trace)


def _reading(trace: "Trace") -> dict[str, Any] | None:
    from attention_viz.analysis.readings import READINGS

    found = READINGS.get(trace.provenance.reading)
    return None if found is None or found.function is None else {"label": found.label, "together": not found.per_head}


def _layer(layer: "Layer", name: str, packet: Packet, masks: "Masks") -> dict[str, Any]:
    call = layer.attention
    heads, queries, keys = call.shape
    blocked, steps, sums = _blocked(call), np.empty((heads, keys, queries), np.uint16), list[np.ndarray]()
    # Some rows at a time: of a long text the weights take far more room than what is made of them.
    for rows in row_slices(queries, heads * keys):
        weights = weights_of(call if rows == slice(0, queries) else call.rows(rows))
        _refuse_broken(weights, name)
        steps[:, :, rows] = steps_of(weights, None if blocked is None else blocked[:, rows]).swapaxes(1, 2)
        sums.append(_sums(weights))
    high, low = split_numbers(steps)
    return {
        "label": layer.label,
        "heads": heads,
        "blocked": masks.add(blocked, packet),
        **_left_out(layer, packet, masks),
        "high": packet.add(high),
        "low": packet.add(low),
        "sums": packet.add(np.concatenate(sums, axis=1).tobytes()),
    }


def _left_out(layer: "Layer", packet: Packet, masks: "Masks") -> dict[str, Any]:
    """Pack the keys that an indexer left out, and how far below the cut each is, key by key."""
    if layer.picking is None:
        return {}
    left, margins = (one.cpu().numpy() for one in (layer.picking.left_out, layer.picking.margins.float()))
    below = [packet.add_numbers(-margins[head].T[one.T]) for head, one in enumerate(left)]
    return {"left": list(zip(masks.add(left, packet) or (), below, strict=True))}


def _refuse_broken(weights: Float[np.ndarray, "head query key"], name: str) -> None:
    """Refuse non-finite weights, which would be drawn as zeros."""
    broken = np.flatnonzero(~np.isfinite(weights).all(axis=(1, 2)))
    if broken.size:
        raise TraceError(f"can't draw head {broken[0]} of {name}: some of its weights aren't finite numbers")


def _blocked(call: "Attention") -> Bool[np.ndarray, "heads query key"] | None:
    """Return True if blocked; one slice if heads agree, None if nothing is blocked."""
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


def _sums(weights: Float[np.ndarray, "head query key"]) -> UInt16[np.ndarray, "head query"]:
    """Return row sums as little-endian 16-bit numbers of 65,535ths."""
    sums = weights.sum(axis=2, dtype=np.float64).clip(0, 1)
    return np.rint(sums * _SUM_STEPS).astype("<u2")
