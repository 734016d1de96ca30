"""What every query of every head has of each metric: small layers together, of a large one some rows at a time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.sample import sample_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import between, first
from attention_viz.trace.trace import Trace

__all__ = ["MeasuredQueries", "asked_rows", "measured"]

# Weights that are made at a time: 2 MiB in float32, which stay in the processor's caches from metric to metric.
_AT_ONCE = 2**19
# A text of more weights than this is measured by a sample, of so many rows, unless all are asked for.
_MANY, _SAMPLE = 2**29, 256


class MeasuredQueries(NamedTuple):
    """Some queries of one layer, or of several that have one mask.

    Attributes:
        heads: which heads, by layer and number.
        rows: which queries, and what metrics know of the tokens.
        weights: of every head; keys at the end at which none of these queries may look are left out.
        values: what each query has of each metric, 0 where it hasn't what is asked for.
    """

    heads: tuple[tuple[int, int], ...]
    rows: QueryRows
    weights: Float[Tensor, "head row key"]
    values: Float64[Tensor, "metric head row"]
    having: Bool[Tensor, "metric head row"]

    def sums(self) -> Float64[Tensor, "3 metric head"]:
        """Of each metric and head: how many of these queries have it, the sum of what they have, and of its square."""
        return torch.stack([self.having.sum(dim=-1), self.values.sum(dim=-1), self.values.square().sum(dim=-1)])


def asked_rows(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> tuple[int, ...]:
    """The queries that are measured: those that count, or a sample of them.

    Args:
        asked: how many; None for all, or 256 where the text has more than 2²⁹ weights in all heads together.
    """
    counted = trace.query_tokens(stream).counted
    return counted if asked == "all" else sample_of(counted, _sample_size(trace, stream) if asked is None else asked)


def measured(
    trace: Trace, stream: str, rows: Sequence[int], known: QueryRows | None = None
) -> Iterator[MeasuredQueries]:
    """Every metric of some queries, of as many heads and queries at a time as stay in the processor's caches.

    Args:
        known: what metrics know of the tokens, where it is at hand; what is of other queries is worked out anew.
    """
    calls = {layer: trace.attention(layer, stream) for layer in trace.layer_numbers(stream)}
    groups = list(_groups(calls, len(rows)))
    for some in _blocks(rows, max(call.shape[0] * call.shape[2] for call in calls.values())):
        if known is None or known.positions.tolist() != list(some):
            queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
            known = QueryRows.of(queries, keys, alike=stream != "cross", positions=some)
        last: dict[object, int] = {}
        for layers in groups:
            heads = tuple((layer, head) for layer in layers for head in range(calls[layer].shape[0]))
            yield _measured(heads, [_for_rows(calls[layer], some, last) for layer in layers], known)


def _groups(calls: Mapping[int, Attention], rows: int) -> Iterator[tuple[int, ...]]:
    """Layers that follow each other and have one mask, as many as are small enough to be measured together."""
    waiting, cells = list[int](), 0
    for layer, call in calls.items():
        size = call.shape[0] * rows * call.shape[2]
        if waiting and (cells + size > _AT_ONCE or not _together(calls[waiting[-1]], call)):
            yield tuple(waiting)
            waiting, cells = [], 0
        waiting.append(layer)
        cells += size
    yield tuple(waiting)


def _together(one: Attention, other: Attention) -> bool:
    """Whether what two calls have in common lets their weights be made together."""
    alike = one.sinks is None and other.sinks is None and one.query.dtype == other.query.dtype
    return alike and one.shape[1:] == other.shape[1:] and _mask_of(one) == _mask_of(other)


def _mask_of(call: Attention) -> object:
    """What tells whether two calls have the same mask: layers share theirs."""
    whole = call.allowed
    # One that differs by head belongs to the heads of its layer.
    shared = whole is None or whole.shape[:-2].numel() == 1
    return None if whole is None else (whole.data_ptr(), whole.shape, whole.stride(), shared or id(call))


def _sample_size(trace: Trace, stream: str) -> int:
    """How many queries tell enough, where nobody said how many."""
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return _SAMPLE if sum(math.prod(shape) for shape in shapes) > _MANY else max(1, shapes[0][-2])


def _blocks(rows: Sequence[int], cells: int) -> Iterator[Sequence[int]]:
    step = max(1, _AT_ONCE // cells)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _measured(heads: tuple[tuple[int, int], ...], calls: Sequence[Attention], rows: QueryRows) -> MeasuredQueries:
    weights, looking = _weights(calls)
    found = torch.stack([metric.function(weights, rows) for metric in METRICS.values()])
    having = ~found.isnan()
    having &= looking
    values = torch.where(having, found, 0).double()
    # A weight that is not a number makes its row so, which no mean may pass over.
    broken = weights[..., 0].isnan() & looking
    if bool(broken.any()):
        values.masked_fill_(broken, torch.nan)
    return MeasuredQueries(heads, rows, weights, values, having)


def _for_rows(call: Attention, rows: Sequence[int], last: dict[object, int]) -> Attention:
    """The call for some of its queries, without the keys at the end that none of them may look at.

    `last` keeps how many keys those are, by mask.
    """
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
    """The weights of all heads of some calls in float32, and which queries may look at anything."""
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
    """What enters the softmax but for the mask, of all heads of some calls."""
    scale = calls[0].scale
    if any(one.softcap is not None or one.bias is not None or one.scale != scale for one in calls):
        return torch.cat([replace(one, allowed=None).masked.detach() for one in calls])
    return torch.cat([one.scores.detach() for one in calls]).mul_(scale)


def _looking(logits: Float[Tensor, "head row key"]) -> Bool[Tensor, "head row"]:
    """Which rows may look at anything."""
    found = ~torch.isneginf(logits[..., 0])
    # Only where the first key is blocked in some row, all others have to be looked at.
    return found if bool(found.all()) else ~torch.isneginf(logits.amax(dim=-1))
