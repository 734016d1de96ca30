"""One head of a long text for the browser, as terms of its weights.

A head's n² weights follow from 2·n·d_k numbers (query, key) and each row's normaliser, the log of its exponentials'
sum, sinks included. With scale, soft cap, bias (by distance or key) and blocked runs, the browser computes
exp(logit − normaliser). Two maps of at most 512 × 512 blocks go along: largest weight, and mean of open ones.

If a bias differs by cell (positions compared with words), or the browser doesn't know a term, the head's weights are
sent, off by under 1e-5.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int32, UInt16

from attention_viz.analysis.blocks import row_slices, weights_of
from attention_viz.analysis.chat.table import SegmentAxis, segment_weights
from attention_viz.analysis.overview import overview
from attention_viz.errors import TraceError
from attention_viz.explorer.axes import segments_in_sight
from attention_viz.explorer.packet import Packet, read_packet
from attention_viz.explorer.planes import Masks, codes_of, split_numbers, steps_of
from attention_viz.operation.terms import has_others

if TYPE_CHECKING:
    from attention_viz.operation.attention import Attention
    from attention_viz.trace.trace import Trace

__all__ = ["MOST_WEIGHTS_OF_A_HEAD", "add_head", "beginning_of", "pack_head", "runs_of"]

# The most weights of one head that travel as weights: in the browser two bytes each, 134 megabytes.
MOST_WEIGHTS_OF_A_HEAD = 8192 * 8192
# Such weights travel as so many even steps from 0 to 1, two bytes each.
WEIGHT_STEPS = 65_535
# The terms that the browser computes with; of a head with others the weights travel.
_TERMS = ("query", "key", "value", "allowed", "scale", "bias", "softcap", "sinks")
# A mean is drawn and never told as a number: even steps of its logarithm, half a hundredth each, down to 1e-8.
MEAN_CODES, FAINTEST_MEAN = 4000, 1e-8
# The most runs of open cells that a row has on average; with more, the pattern travels as bits.
_MOST_RUNS = 16


def pack_head(trace: "Trace", stream: str, layer: int, head: int, of: str) -> bytes:
    """Pack a head; `of` is the trace's `id`."""
    packet, masks = Packet(), Masks()
    axis = segments_in_sight(trace) if stream == trace.text_stream else None
    entry = add_head(trace.attention(layer, stream).head(head), packet, masks, axis)
    header = {"of": of, "stream": stream, "layer": layer, "head": head, "entry": entry, "masks": masks.entries}
    return packet.pack(header)


def beginning_of(packed: bytes) -> bytes:
    """Return a head's first bytes, for its maps: a twentieth."""
    header, arrays = read_packet(packed)
    entry = header["entry"]
    numbers, _ = entry["weights"]["high"] if "weights" in entry else entry["query"]
    return packed[: len(packed) - len(arrays) + numbers]


def add_head(call: "Attention", packet: Packet, masks: Masks, axis: SegmentAxis | None = None) -> dict[str, Any]:
    """Add a head's terms, map and weights between segments; return its header."""
    found = overview(call, means=True)
    assert found.means is not None
    entry: dict[str, Any] = {
        "queries": found.shape[0],
        "keys": found.shape[1],
        "size": found.size,
        "most": float(found.values.max(initial=0.0)),
        "map": _numbers(steps_of(found.values.T), packet),
        "means": {
            **_numbers(codes_of(found.means.T, MEAN_CODES, FAINTEST_MEAN), packet),
            "codes": MEAN_CODES,
            "faintest": FAINTEST_MEAN,
        },
        "sums": packet.add(found.sums.astype("<f4").tobytes()),
        **({} if axis is None else {"segments": packet.add_numbers(_float32(segment_weights(call, axis)))}),
    }
    bias = _bias(call, packet)
    if bias == "cells" or has_others(call, _TERMS):
        return {**entry, **_weights(call, packet, masks, closed=found.closed)}
    return {  # what the maps need comes before the numbers, see `beginning_of`
        **entry,
        "width": call.query.shape[-1],
        "scale": call.scale,
        "softcap": call.softcap,
        "bias": bias,
        "blocked": _pattern(call, packet, masks, closed=found.closed),
        "query": packet.add_numbers(_float32(call.query)),
        "key": packet.add_numbers(_float32(call.key)),
        "normalisers": packet.add_numbers(found.normalisers),
    }


def _numbers(numbers: UInt16[np.ndarray, "*any"], packet: Packet) -> dict[str, tuple[int, int]]:
    high, low = split_numbers(numbers)
    return {"high": packet.add(high), "low": packet.add(low)}


def _float32(tensor: Any) -> Float[np.ndarray, "*any"]:
    return tensor.detach().float().cpu().numpy()


def _bias(call: "Attention", packet: Packet) -> dict[str, Any] | str | None:
    """Return one number per key or distance; "cells" if each cell has its own."""
    if call.bias is None:
        return None
    bias = np.broadcast_to(_float32(call.bias), call.shape)
    if not bias.any():
        return None
    allowed = None if call.allowed is None else np.broadcast_to(call.allowed.cpu().numpy(), call.shape)
    for along in ("key", "distance"):
        if (numbers := _numbers_along(along, bias, allowed)) is not None:
            return {"along": along, "at": packet.add_numbers(numbers)}
    return "cells"


def _numbers_along(
    along: str, bias: Float[np.ndarray, "query key"], allowed: Bool[np.ndarray, "query key"] | None
) -> Float[np.ndarray, " n"] | None:
    """Return numbers by key, or by distance from the furthest behind; None if open (not blocked) cells differ."""
    queries, keys = bias.shape
    count = keys if along == "key" else queries + keys - 1
    numbers, known = np.zeros(count, np.float32), np.zeros(count, bool)
    for row in range(queries):
        start = 0 if along == "key" else queries - 1 - row
        found, seen = numbers[start : start + keys], known[start : start + keys]
        differs = (found != bias[row]) & seen
        if (differs if allowed is None else differs & allowed[row]).any():
            return None
        np.copyto(found, bias[row], where=~seen if allowed is None else allowed[row] & ~seen)
        seen |= True if allowed is None else allowed[row]
    return numbers


def _pattern(call: "Attention", packet: Packet, masks: Masks, *, closed: bool) -> int | None:
    """Return the mask pattern's number; None if nothing is blocked."""
    queries, keys = call.shape
    if closed:  # known already, and its runs would take long
        return masks.put({"kind": "causal", "queries": queries, "keys": keys})
    if call.allowed is None or bool(call.allowed.all()):
        return None
    allowed = np.broadcast_to(call.allowed.cpu().numpy(), call.shape)
    runs = runs_of(allowed)
    causal = np.minimum(np.arange(1, queries + 1) + keys - queries, keys)
    if queries <= keys and np.array_equal(runs, _one_run_a_row(causal)):
        return masks.put({"kind": "causal", "queries": queries, "keys": keys})
    if len(runs) - queries - 1 > 2 * _MOST_RUNS * queries:
        entry = masks.add(~allowed[None], packet)
        return None if entry is None else entry[0]
    return masks.put({"kind": "runs", "queries": queries, "keys": keys, "at": packet.add(runs.tobytes())})


def _one_run_a_row(ends: np.ndarray) -> Int32[np.ndarray, " n"]:
    return np.concatenate([np.arange(len(ends) + 1), np.stack([np.zeros_like(ends), ends], 1).ravel()]).astype("<i4")


def runs_of(allowed: Bool[np.ndarray, "query key"]) -> Int32[np.ndarray, " n"]:
    """Return rows' first open runs and count; then runs' starts and ends."""
    queries, keys = allowed.shape
    counts, places = [np.zeros(1, np.int64)], list[np.ndarray]()
    for rows in row_slices(queries, keys):
        edges = np.diff(allowed[rows].astype(np.int8), axis=1, prepend=0, append=0)
        counts.append((edges == 1).sum(axis=1))
        # In a row a run begins, ends, the next begins …: in order they are pairs.
        places.append(np.nonzero(edges)[1])
    return np.concatenate([np.cumsum(np.concatenate(counts)), *places]).astype("<i4")


def _weights(call: "Attention", packet: Packet, masks: Masks, *, closed: bool) -> dict[str, Any]:
    queries, keys = call.shape
    if queries * keys > MOST_WEIGHTS_OF_A_HEAD:
        raise TraceError(
            f"the head has a bias for each of its {queries:,} × {keys:,} cells; the explorer draws at "
            f"most {MOST_WEIGHTS_OF_A_HEAD:,} cells of such a head ({int(MOST_WEIGHTS_OF_A_HEAD**0.5):,} tokens)"
        )
    blocked = _pattern(call, packet, masks, closed=closed)
    steps = np.empty((keys, queries), "<u2")
    for rows in row_slices(queries, keys):
        steps[:, rows] = np.rint(weights_of(call.rows(rows)) * np.float32(WEIGHT_STEPS)).T
    high, low = (steps >> 8).astype(np.uint8), steps.astype(np.uint8)
    weights = {"high": packet.add(high.tobytes()), "low": packet.add(low.tobytes()), "steps": WEIGHT_STEPS}
    return {"blocked": blocked, "weights": weights}
