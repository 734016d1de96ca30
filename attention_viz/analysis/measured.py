"""What every query of every head has of each metric: some rows at a time, layer by layer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import Rows
from attention_viz.analysis.sample import sample_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import first
from attention_viz.trace.trace import Trace

__all__ = ["Measured", "asked_rows", "measured"]

# Weights that are made at a time: 2 MiB in float32, which stay in the processor's caches from metric to metric.
_AT_ONCE = 2**19
# A text of more weights than this is measured by a sample, of so many rows, unless all are asked for.
_MANY, _SAMPLE = 2**29, 256


class Measured(NamedTuple):
    """Some queries of one layer.

    Attributes:
        layer: its number.
        rows: which queries, and what metrics know of the tokens.
        weights: of every head; keys at the end at which none of these queries may look are left out.
        values: what each query has of each metric, 0 where it hasn't what is asked for.
        having: where it has.
    """

    layer: int
    rows: Rows
    weights: Float[Tensor, "head row key"]
    values: Float64[Tensor, "metric head row"]
    having: Bool[Tensor, "metric head row"]

    def sums(self) -> Float64[Tensor, "3 metric head"]:
        """Of each metric and head: how many of these queries have it, the sum of what they have, and of its square."""
        return torch.stack([self.having.sum(dim=-1), self.values.sum(dim=-1), self.values.square().sum(dim=-1)])


def asked_rows(trace: Trace, stream: str, asked: int | Literal["all"] | None) -> tuple[int, ...]:
    """The queries that are measured: those that count, or a sample of them.

    Args:
        trace: the run.
        stream: which attention.
        asked: how many; None for all, or 256 where the text has more than 2²⁹ weights in all heads together.
    """
    counted = trace.query_tokens(stream).counted
    return counted if asked == "all" else sample_of(counted, _sample_size(trace, stream) if asked is None else asked)


def measured(trace: Trace, stream: str, rows: Sequence[int]) -> Iterator[Measured]:
    """Every metric of some queries, as many of them at a time as stay in the processor's caches.

    Args:
        trace: the run.
        stream: which attention.
        rows: the positions of the queries.
    """
    calls = {layer: trace.attention(layer, stream) for layer in trace.layer_numbers(stream)}
    for some in _blocks(rows, max(call.shape[0] * call.shape[2] for call in calls.values())):
        known = Rows.of(trace.query_tokens(stream), trace.key_tokens(stream), alike=stream != "cross", positions=some)
        last: dict[object, int] = {}
        for layer, call in calls.items():
            yield _measured(layer, _for_rows(call, some, last), known)


def _sample_size(trace: Trace, stream: str) -> int:
    """How many queries tell enough, where nobody said how many."""
    shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
    return _SAMPLE if sum(math.prod(shape) for shape in shapes) > _MANY else max(1, shapes[0][-2])


def _blocks(rows: Sequence[int], cells: int) -> Iterator[Sequence[int]]:
    step = max(1, _AT_ONCE // cells)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _measured(layer: int, call: Attention, rows: Rows) -> Measured:
    weights, looking = _weights(call)
    found = torch.stack([metric.function(weights, rows) for metric in METRICS.values()]).double()
    having = ~found.isnan() & looking
    # A weight that is not a number makes its row so, which no mean may pass over.
    broken = (weights[..., 0].isnan() & looking).expand(found.shape)
    values = torch.where(having, found, 0).masked_fill(broken, torch.nan)
    return Measured(layer, rows, weights, values, having)


def _for_rows(call: Attention, rows: Sequence[int], last: dict[object, int]) -> Attention:
    """The call for some of its queries, without the keys at the end that none of them may look at.

    `last` keeps how many keys those are, by mask: layers share theirs.
    """
    found, whole = call.rows(rows), call.allowed
    if whole is None or found.allowed is None or whole.shape[-1] == 1:
        return found
    mask = (whole.data_ptr(), whole.shape, whole.stride())
    if mask not in last:
        open_to_any = found.allowed.flatten(0, -2).any(dim=0).nonzero()
        last[mask] = int(open_to_any[-1]) + 1 if len(open_to_any) else 1
    return first(found, keys=last[mask])


def _weights(call: Attention) -> tuple[Float[Tensor, "head row key"], Bool[Tensor, "head row"]]:
    """The weights in float32, and which queries may look at anything."""
    if call.sinks is not None:
        logits, weights = call.masked.detach(), call.weights.detach()
    else:
        logits = replace(call, allowed=None).masked.detach()
        if call.allowed is not None:
            # Into the same memory, which was just made: this is asked of millions of rows.
            logits.masked_fill_(~call.allowed, -math.inf)
        weights = logits.softmax(dim=-1).to(call.query.dtype)
    return weights.float().cpu(), ~torch.isneginf(logits.amax(dim=-1)).cpu()
