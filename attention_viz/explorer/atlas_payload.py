"""All heads of a trace for the atlas: numbers, and thumbnails up to 32 × 32.

The one plane has thumbnails head by head, key by key, a byte per cell: the largest weight as 254ths of the head's
deepest colour; 255 if all blocked.
"""

from typing import TYPE_CHECKING, Any

import numpy
from jaxtyping import Bool, Float, UInt8

from attention_viz.explorer.axes import packed_layers
from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

# At most so many cells along each side of a thumbnail.
SIDE = 32
# The deepest colour, and the number that stands for blocked cells.
LEVELS, BLOCKED = 254, 255


def pack_atlas(trace: "Trace", stream: str, table: "pandas.DataFrame", roles: "pandas.DataFrame") -> bytes:
    """Pack thumbnails and numbers; equal inputs give equal bytes."""
    from attention_viz.explorer.atlas_roles import pack_roles

    trace.check_every_layer("the atlas", stream)
    levels, tops = _thumbnails(trace, stream)
    packet = Packet()
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    header = {
        "layers": packed_layers(trace, stream),
        "queries": _names(queries),
        "keys": _names(keys),
        "pooled": [-(-len(one) // SIDE) for one in (queries, keys)],
        "tops": tops,
        **_numbers(table),
        **pack_roles(trace, stream, roles),
        "plane": packet.add(levels),
    }
    return packet.pack(header)


def _numbers(table: "pandas.DataFrame") -> dict[str, Any]:
    """Return metrics, heads in table order; None if there is nothing to count."""
    from attention_viz.analysis.head_table import COUNT
    from attention_viz.analysis.metrics import METRICS
    from attention_viz.views.style.scale import round_up

    def column(name: str) -> list[float | None]:
        return [None if number != number else round(number, 6) for number in table[name].tolist()]

    there = [name for name in METRICS if name in table]
    spread = f"{there[0]}_spread" in table.columns
    return {
        "metrics": [{"name": name, "label": METRICS[name].label, "unit": METRICS[name].unit} for name in there],
        "numbers": {name: column(name) for name in there},
        "counts": {name: table[name + COUNT].astype(int).tolist() for name in there},
        "spreads": {name: column(f"{name}_spread") for name in there} if spread else None,
        "fulls": {name: round_up(float(numpy.nanmax(table[name].to_numpy(), initial=0.0))) for name in there},
    }


def _thumbnails(trace: "Trace", stream: str) -> tuple[bytes, list[float]]:
    from attention_viz.views.style.scale import full_colour

    parts, tops = list[bytes](), list[float]()
    for layer in trace.layer_numbers(stream):
        attention = trace.attention(layer, stream)
        weights = attention.weights.detach().float().cpu().numpy()
        pooled = _pooled(weights, numpy.maximum)
        heads, rows, columns = weights.shape
        shut = numpy.zeros((1, rows, columns), dtype=bool)
        if attention.allowed is not None:
            shut = ~numpy.broadcast_to(attention.allowed.cpu().numpy(), weights.shape)
        blocked = numpy.broadcast_to(_pooled(shut, numpy.logical_and), pooled.shape)
        for head in range(heads):
            tops.append(full_colour(weights[head]))
            parts.append(_levels(pooled[head], blocked[head], tops[-1]).T.tobytes())
    return b"".join(parts), tops


def _pooled(cells: numpy.ndarray, together: numpy.ufunc) -> numpy.ndarray:
    for axis in (1, 2):
        cells = together.reduceat(cells, starts(cells.shape[axis]), axis=axis)
    return cells


def starts(count: int) -> list[int]:
    """Return the starts of at most `SIDE` even parts."""
    parts = min(count, SIDE)
    return [part * count // parts for part in range(parts)]


def _levels(
    weights: Float[numpy.ndarray, "q k"], blocked: Bool[numpy.ndarray, "q k"], full: float
) -> UInt8[numpy.ndarray, "q k"]:
    levels = numpy.rint(weights.clip(0, full) / full * LEVELS).astype(numpy.uint8)
    return numpy.where(blocked, numpy.uint8(BLOCKED), levels)


def _names(tokens: "Tokens") -> list[str]:
    from attention_viz.views.style.wording import shortened

    first = starts(len(tokens))
    every = "" if len(first) == len(tokens) else " …"
    return [shortened(tokens.written[place], 12) + every for place in first]
