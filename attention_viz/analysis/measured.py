"""Weights of some rows of several heads, and their metrics, in parts that fit the processor's caches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from attention_viz.analysis.metrics import METRICS, metrics_in
from attention_viz.analysis.places import sample_of
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.signed import (
    by_heads,
    carries_back,
    mixers_of,
    open_cells,
    shares_of_size,
    signed_rows,
)
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import between, first
from attention_viz.operation.reach import is_causal
from attention_viz.trace.kind import CROSSING_STREAMS, MEDIA, SLOT_STREAMS, stream_kind
from attention_viz.trace.once import once
from attention_viz.trace.slots import are_alike, has_target
from attention_viz.trace.trace import Trace

# Weights of several layers that are put together, and those of one layer that are made at a time: 4 and 32 MiB.
_TOGETHER, _AT_ONCE = 2**20, 2**23
# Weights that are made at a time: 2 MiB in float32, which stay in the processor's caches from metric to metric.
WEIGHTS_AT_A_TIME = 2**19
# A text of more weights than this is measured by a sample, of so many rows, unless all are asked for.
MANY_WEIGHTS, SAMPLED_ROWS = 2**29, 256


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Some rows' weights in several heads (layer, head), 0 for NaN, with each row's number of open keys.

    Without a softmax, the weights are shares of size.
    """

    heads: Sequence[tuple[int, int]]
    weights: Float[Tensor, "head row key"]
    open: Int[Tensor, "head row"]
    known: Mapping[str, Float[Tensor, "head row"]] = field(default_factory=dict[str, Tensor])

    def metric(self, name: str, rows: QueryRows) -> Float[Tensor, "head row"]:
        """Return each row's metric; NaN if undefined."""
        return self.known[name] if name in self.known else METRICS[name].function(self.weights, rows)

    @once
    def _columns(self) -> tuple[Float[Tensor, "head key"], Float[Tensor, "head key"]]:
        # No weight is below 0, and of numbers the sum is found several times faster than of truth values.
        others = self.weights.sign().sum(dim=1) - 1
        return self.weights.sum(dim=1), others.clamp_min(1)

    def above_at(self, rows: Int[Tensor, " pair"], keys: Int[Tensor, " pair"]) -> Float[Tensor, "head pair"]:
        """As `above`, for (row, key) pairs only."""
        own, (whole, others) = self.weights[:, rows, keys], self._columns
        return own - (whole[:, keys] - own) / others[:, keys]

    @once
    def above(self) -> Float[Tensor, "head row key"]:
        """Return each weight's excess over the key's mean in other open rows."""
        whole, others = self._columns
        elsewhere = (whole[:, None] - self.weights).div_(others[:, None])
        return torch.sub(self.weights, elsewhere, out=elsewhere)


def row_weights(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[RowWeights]:
    """Yield rows' weights in layer order: small layers together, large ones by head."""
    waiting, cells = list[RowWeights](), 0
    for part in _parts(trace, stream, rows):
        if cells and cells + part.weights.numel() > _TOGETHER:
            yield _joined(waiting)
            waiting, cells = [], 0
        waiting.append(part)
        cells += part.weights.numel()
    yield _joined(waiting)


def looks_back(trace: Trace, stream: str) -> bool:
    """Return whether no query of a stream looks ahead."""
    if stream in trace.mixers:
        return all(carries_back(mixer) for mixer in mixers_of(trace, stream).values())
    first = trace.attention(trace.layer_numbers(stream)[0], stream)
    causal = stream_kind(stream) == "decoder"
    return causal or (stream not in CROSSING_STREAMS and is_causal(first.allowed, first.shape[-2:]))


def continues_text(trace: Trace) -> bool:
    """Return whether a trace is of a model that reads from left to right: a decoder, or causal mixers alone."""
    if "decoder" in trace.attention_streams:
        return not has_target(trace.attention_streams)
    return trace.streams[0] == "decoder" or (not trace.attention_streams and looks_back(trace, trace.streams[0]))


def word_stream(trace: Trace) -> str:
    """Return the stream whose positions are a text's words: the first, or the one after an image's or audio's tower."""
    streams = [one for one in trace.attention_streams if one not in SLOT_STREAMS]
    if len(streams) == 2 and streams[0] in MEDIA:
        return streams[1]
    return "decoder" if continues_text(trace) and "decoder" in streams else trace.streams[0]


def _joined(parts: Sequence[RowWeights]) -> RowWeights:
    heads = [head for part in parts for head in part.heads]
    return RowWeights(heads, torch.cat([part.weights for part in parts]), torch.cat([part.open for part in parts]))


def _parts(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[RowWeights]:
    if stream in trace.mixers:
        yield from _shares(trace, stream, rows)
        return
    for layer in trace.layer_numbers(stream):
        call = trace.attention(layer, stream)
        some = call if len(rows) == call.shape[-2] else call.rows(rows)
        heads = [(layer, head) for head in range(call.shape[0])]
        if math.prod(some.shape) <= _AT_ONCE:
            yield RowWeights(heads, _numbers(some), _open_keys(some))
        else:
            ones = ((head, some.head(head[1])) for head in heads)
            yield from (RowWeights([head], _numbers(one)[None], _open_keys(one)[None]) for head, one in ones)


def _shares(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[RowWeights]:
    for layer, mixer in mixers_of(trace, stream).items():
        room = open_cells(mixer, rows).sum(dim=-1)
        for heads, weights in by_heads(signed_rows(mixer, rows)):
            shares = shares_of_size(weights).nan_to_num(0)
            yield RowWeights([(layer, head) for head in heads], shares, room.expand(shares.shape[:2]))


def _numbers(call: Attention) -> Float[Tensor, "*head row key"]:
    return call.weights.detach().float().cpu().nan_to_num(0)


def _open_keys(call: Attention) -> Int[Tensor, "*head row"]:
    if call.allowed is None:
        return torch.full(call.shape[:-1], call.shape[-1])
    return call.allowed.expand(call.shape).sum(dim=-1).cpu()


class MeasuredQueries(NamedTuple):
    """Measured queries of layers with one mask: heads are (layer, head), an undefined metric is 0.

    Metrics are those of `names_of`. Without a softmax, the weights are shares of size.
    """

    heads: tuple[tuple[int, int], ...]
    rows: QueryRows
    weights: Float[Tensor, "head row key"]
    values: Float64[Tensor, "metric head row"]
    having: Bool[Tensor, "metric head row"]

    def sums(self) -> Float64[Tensor, "3 metric head"]:
        """Return count, sum and sum of squares by metric and head."""
        return torch.stack([self.having.sum(dim=-1), self.values.sum(dim=-1), self.values.square().sum(dim=-1)])


def names_of(trace: Trace, stream: str) -> tuple[str, ...]:
    """Return the metrics that a stream's layers have."""
    return metrics_in("mixer" if stream in trace.mixers else "softmax")


def asked_rows(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> tuple[int, ...]:
    """Return the counted queries, or a sample of `asked`; by default of 256 above 2²⁹ weights over all heads."""
    counted = trace.query_tokens(stream).counted
    return counted if asked == "all" else sample_of(counted, _sample_size(trace, stream) if asked is None else asked)


def measured(
    trace: Trace, stream: str, rows: Sequence[int], known: QueryRows | None = None
) -> Iterator[MeasuredQueries]:
    """Yield queries' metrics in parts that stay in the processor's caches."""
    if stream in trace.mixers:
        yield from _mixed(trace, stream, rows, known)
        return
    calls = {layer: trace.attention(layer, stream) for layer in trace.layer_numbers(stream)}
    groups = list(_groups(calls, len(rows)))
    for some in _blocks(rows, max(call.shape[0] * call.shape[2] for call in calls.values())):
        if known is None or known.positions.tolist() != list(some):
            queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
            known = QueryRows.of(queries, keys, alike=are_alike(stream, queries, keys), positions=some)
        last: dict[object, int] = {}
        for layers in groups:
            heads = tuple((layer, head) for layer in layers for head in range(calls[layer].shape[0]))
            yield _measured(heads, [_for_rows(calls[layer], some, last) for layer in layers], known)


def _mixed(trace: Trace, stream: str, rows: Sequence[int], known: QueryRows | None) -> Iterator[MeasuredQueries]:
    """Yield the metrics of layers without a softmax: a row costs least together with all others of its head."""
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    if not rows:
        return
    metrics = [METRICS[name] for name in names_of(trace, stream)]
    of_shares = torch.tensor(["softmax" in metric.layers for metric in metrics])
    for layer, mixer in mixers_of(trace, stream).items():
        for some in signed_rows(mixer, rows):
            if known is None or known.positions.tolist() != list(some.rows):
                known = QueryRows.of(queries, keys, alike=True, positions=some.rows)
            shares = shares_of_size(some.weights)
            rowwise = [(shares if shared else some.weights) for shared in of_shares.tolist()]
            found = torch.stack([one.function(two, known).double() for one, two in zip(metrics, rowwise, strict=True)])
            # A row of zeros has a sum but no shares, and one with a number that is none makes its means so.
            empty, broken = (some.weights == 0).all(dim=-1), some.weights.isnan().any(dim=-1)
            having = ~found.isnan() & ~(empty & of_shares[:, None, None])
            values = torch.where(having, found, 0.0).masked_fill(broken, torch.nan)
            yield MeasuredQueries(tuple((layer, head) for head in some.heads), known, shares, values, having)


def _groups(calls: Mapping[int, Attention], rows: int) -> Iterator[tuple[int, ...]]:
    waiting, cells = list[int](), 0
    for layer, call in calls.items():
        size = call.shape[0] * rows * call.shape[2]
        if waiting and (cells + size > WEIGHTS_AT_A_TIME or not _together(calls[waiting[-1]], call)):
            yield tuple(waiting)
            waiting, cells = [], 0
        waiting.append(layer)
        cells += size
    yield tuple(waiting)


def _together(one: Attention, other: Attention) -> bool:
    alike = one.sinks is None and other.sinks is None and one.query.dtype == other.query.dtype
    return alike and one.shape[1:] == other.shape[1:] and _mask_of(one) == _mask_of(other)


def _mask_of(call: Attention) -> object:
    whole = call.allowed
    # One that differs by head belongs to the heads of its layer.
    shared = whole is None or whole.shape[:-2].numel() == 1
    return None if whole is None else (whole.data_ptr(), whole.shape, whole.stride(), shared or id(call))


def _sample_size(trace: Trace, stream: str) -> int:
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return SAMPLED_ROWS if sum(math.prod(shape) for shape in shapes) > MANY_WEIGHTS else max(1, shapes[0][-2])


def _blocks(rows: Sequence[int], cells: int) -> Iterator[Sequence[int]]:
    step = max(1, WEIGHTS_AT_A_TIME // cells)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _measured(heads: tuple[tuple[int, int], ...], calls: Sequence[Attention], rows: QueryRows) -> MeasuredQueries:
    weights, looking = _weights(calls)
    found = torch.stack([METRICS[name].function(weights, rows) for name in metrics_in("softmax")])
    having = ~found.isnan()
    having &= looking
    values = torch.where(having, found, 0).double()
    # A weight that is not a number makes its row so, which no mean may pass over.
    broken = weights[..., 0].isnan() & looking
    if bool(broken.any()):
        values.masked_fill_(broken, torch.nan)
    return MeasuredQueries(heads, rows, weights, values, having)


def _for_rows(call: Attention, rows: Sequence[int], last: dict[object, int]) -> Attention:
    """Without trailing hidden keys; `last` caches their number by mask."""
    unbroken = len(rows) > 0 and list(rows) == list(range(rows[0], rows[-1] + 1))
    found, whole = between(call, rows[0], rows[-1] + 1) if unbroken else call.rows(rows), call.allowed
    if whole is None or found.allowed is None or whole.shape[-1] == 1:
        return found
    mask = _mask_of(call)
    if mask not in last:
        open_to_any = found.allowed.flatten(0, -2).any(dim=0).nonzero()
        last[mask] = int(open_to_any[-1]) + 1 if len(open_to_any) else 1
    return first(found, keys=last[mask])


def _weights(calls: Sequence[Attention]) -> tuple[Float[Tensor, "head row key"], Bool[Tensor, "head row"]]:
    call = calls[0]
    if call.sinks is not None:
        logits, weights = call.masked.detach(), call.weights.detach()
    else:
        logits = _logits(calls)
        if call.allowed is not None:
            # Into the same memory, which was just made: this is asked of millions of rows.
            logits.masked_fill_(~call.allowed, -math.inf)
        weights = logits.softmax(dim=-1).to(call.query.dtype)
    return weights.float().cpu(), _looking(logits).cpu()


def _logits(calls: Sequence[Attention]) -> Float[Tensor, "head row key"]:
    scale = calls[0].scale
    if any(one.softcap is not None or one.bias is not None or one.scale != scale for one in calls):
        return torch.cat([replace(one, allowed=None).masked.detach() for one in calls])
    return torch.cat([one.scores.detach() for one in calls]).mul_(scale)


def _looking(logits: Float[Tensor, "head row key"]) -> Bool[Tensor, "head row"]:
    found = ~torch.isneginf(logits[..., 0])
    # Only where the first key is blocked in some row, all others have to be looked at.
    return found if bool(found.all()) else ~torch.isneginf(logits.amax(dim=-1))
