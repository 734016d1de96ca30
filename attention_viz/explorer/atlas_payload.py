"""All heads of a trace for the atlas: numbers, and thumbnails up to 32 × 32.

The one plane has thumbnails head by head, key by key, a byte per cell: the largest weight as 254ths of the head's
deepest colour; 255 if all blocked. Without a softmax, a byte is a place on a logarithmic scale from the head's largest
size down to a ten-thousandth of it: of signed weights around 127, of what arrives in all channels from 0.

If a text is short, its cells have room for numbers: a second plane has them in 32 bits, head by head, query by query.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy
from jaxtyping import Bool, Float, UInt8

from attention_viz.analysis.signed import mixer_of, open_cells
from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas

    from attention_viz.operation.token_mixer import TokenMixer
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace


_Drawn: TypeAlias = tuple[UInt8[numpy.ndarray, "q k"], float]


class HeadTables(NamedTuple):
    """One stream's heads: their metrics, and their roles."""

    table: "pandas.DataFrame"
    roles: "pandas.DataFrame"


# At most so many cells along each side of a thumbnail, and of a matrix that has room for numbers.
SIDE, NUMBERED = 32, 16
# The deepest colour, the number that stands for blocked cells, and for 0 where weights have signs.
LEVELS, BLOCKED, MIDDLE = 254, 255, 127


def pack_atlas(
    trace: "Trace",
    stream: str,
    table: "pandas.DataFrame",
    roles: "pandas.DataFrame",
    others: Mapping[str, HeadTables] | None = None,
) -> bytes:
    """Pack thumbnails and numbers; equal inputs give equal bytes.

    Args:
        trace: with each layer's channels together, see `channels_together`.
        others: further streams of the same tokens, such as "mixer", shown in the same grid.
    """
    from attention_viz.explorer.atlas_photo import pack_photo
    from attention_viz.explorer.atlas_roles import pack_roles

    parts = {stream: HeadTables(table, roles), **(others or {})}
    for name in trace.attention_streams:
        if name in parts:
            trace.check_every_layer("the atlas", name)
    rows = layers_in_order(trace, tuple(parts))
    levels, tops = _thumbnails(trace, rows)
    packet = Packet()
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    header = {
        "layers": [_layer(trace, *row, several=len(parts) > 1) for row in rows],
        "queries": _names(queries),
        "keys": _names(keys),
        "pooled": [-(-len(one) // SIDE) for one in (queries, keys)],
        "tops": tops,
        **_numbers(trace, parts, rows),
        **pack_photo(trace, stream, roles, rows, packet),
        **pack_roles(trace, {name: part.roles for name, part in parts.items()}, rows),
        "plane": packet.add(levels),
    }
    if max(len(queries), len(keys)) <= NUMBERED:
        header["values"] = packet.add_numbers(_values(trace, rows))
    return packet.pack(header)


def layers_in_order(trace: "Trace", streams: Sequence[str]) -> list[tuple[str, int]]:
    """Return all streams' layers (stream, layer) in the model's order."""
    rows = [(stream, layer) for stream in streams for layer in trace.layer_numbers(stream)]
    return sorted(rows, key=lambda row: row[1])


def _layer(trace: "Trace", stream: str, layer: int, *, several: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "label": trace.label(layer, stream),
        "number": layer,
        "heads": trace.head_count(layer, stream),
    }
    kind = ""
    if stream in trace.mixers:
        mixer = mixer_of(trace, stream, layer)
        kind = mixer.kind
        entry |= {"kind": mixer.kind, "drawn": "arrived" if mixer.per == "channel" else "signed"}
        if mixer.per == "channel":
            entry["channels"] = True
    if several:
        entry |= {"stream": stream, "name": f"{stream} {layer}"}
    if several or kind:
        entry["called"] = f"{layer} · {kind or 'softmax'}"
    return entry


def _numbers(trace: "Trace", parts: Mapping[str, HeadTables], rows: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return metrics, heads in the order of `rows`; None if there is nothing to count."""
    from attention_viz.analysis.head_table import COUNT
    from attention_viz.analysis.metrics import METRICS
    from attention_viz.views.style.scale import round_up

    tables = [(parts[stream].table, layer) for stream, layer in rows]
    names = [name for name in METRICS if any(name in table for table, _ in tables)]

    def column(name: str) -> list[float]:
        numbers = [
            table.loc[[layer], name].tolist() if name in table else [math.nan] * len(table.loc[[layer]])
            for table, layer in tables
        ]
        return [number for some in numbers for number in some]

    def rounded(name: str) -> list[float | None]:
        return [None if number != number else float(f"{number:.9g}") for number in column(name)]

    spread = any(f"{name}_spread" in tables[0][0] for name in names)
    largest = {name: numpy.nanmax(numpy.abs(column(name)), initial=0.0) for name in names}
    return {
        "metrics": [_metric(name, trace, parts, column(name)) for name in names],
        "numbers": {name: rounded(name) for name in names},
        "counts": {name: [0 if one != one else int(one) for one in column(name + COUNT)] for name in names},
        "spreads": {name: rounded(f"{name}_spread") for name in names} if spread else None,
        "fulls": {name: round_up(float(largest[name])) for name in names},
    }


def _metric(
    name: str, trace: "Trace", parts: Mapping[str, HeadTables], numbers: Sequence[float]
) -> dict[str, str | bool]:
    """Name a metric; where only some layers have a softmax, also as it is called in the others."""
    from attention_viz.analysis.metrics import METRICS

    metric = METRICS[name]
    having = {stream in trace.mixers for stream, part in parts.items() if name in part.table}
    shown = metric.in_mixers if having == {True} else metric
    entry: dict[str, str | bool] = {"name": name, "label": shown.label, "unit": shown.unit}
    if len(having) > 1 and metric.in_mixers.label != metric.label:
        entry["mixed"] = metric.in_mixers.label
    if any(number < 0 for number in numbers):
        entry["signed"] = True
    return entry


def _thumbnails(trace: "Trace", rows: Sequence[tuple[str, int]]) -> tuple[bytes, list[float]]:
    parts, tops = list[bytes](), list[float]()
    for stream, layer in rows:
        mixes = stream in trace.mixers
        for levels, top in _mixed(mixer_of(trace, stream, layer)) if mixes else _attending(trace, stream, layer):
            tops.append(top)
            parts.append(levels.T.tobytes())
    return b"".join(parts), tops


def _values(trace: "Trace", rows: Sequence[tuple[str, int]]) -> Float[numpy.ndarray, "head q k"]:
    """Return all heads' numbers: weights, or what arrives in a layer with a matrix per channel."""
    found = list[numpy.ndarray]()
    for stream, layer in rows:
        mixes = stream in trace.mixers
        call = mixer_of(trace, stream, layer) if mixes else trace.attention(layer, stream)
        found.append(call.weights.detach().float().cpu().numpy())
    return numpy.nan_to_num(numpy.concatenate(found)).astype(numpy.float32)


def _attending(trace: "Trace", stream: str, layer: int) -> "Iterator[_Drawn]":
    from attention_viz.views.style.scale import full_colour

    attention = trace.attention(layer, stream)
    weights = attention.weights.detach().float().cpu().numpy()
    pooled = _pooled(weights, numpy.maximum)
    shut = numpy.zeros((1, *weights.shape[1:]), dtype=bool)
    if attention.allowed is not None:
        shut = ~numpy.broadcast_to(attention.allowed.cpu().numpy(), weights.shape)
    blocked = numpy.broadcast_to(_pooled(shut, numpy.logical_and), pooled.shape)
    for head in range(len(weights)):
        top = full_colour(weights[head])
        yield _levels(pooled[head], blocked[head], top), top


def _mixed(mixer: "TokenMixer") -> "Iterator[_Drawn]":
    from attention_viz.views.style.scale import log_places

    (blocked,) = _pooled(~open_cells(mixer).numpy()[None], numpy.logical_and)
    for head in range(mixer.shape[0]):
        weights = mixer.head(head).weights.detach().float().cpu().numpy()[None]
        most, least = _pooled(weights, numpy.maximum)[0], _pooled(weights, numpy.minimum)[0]
        pooled = numpy.where(most >= -least, most, least)
        top = float(numpy.abs(numpy.nan_to_num(pooled)).max(initial=0.0)) or 1.0
        places = log_places(pooled, top)
        levels = MIDDLE + MIDDLE * places if mixer.per == "head" else LEVELS * places
        yield numpy.where(blocked, numpy.uint8(BLOCKED), numpy.rint(levels).astype(numpy.uint8)), top


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
    return [shortened(tokens.names[place], 12) + every for place in first]
