"""One head of a long text as a map of blocks, largest and mean, with what any single weight follows from."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, is_causal
from attention_viz.operation.shapes import widened

__all__ = ["SIDE", "Overview", "overview"]

# Blocks along each side of a map, at most.
SIDE = 512
# How many logits are computed at a time: 4 MiB, so that what follows finds them in the processor's cache.
_LOGITS_AT_A_TIME = 1_000_000
# In how many parts the rows are taken at least: of a decoder's first rows no key of the last ones is computed.
_PARTS = 4


@dataclass(frozen=True, eq=False)
class Overview:
    """A head of a long text, block by block.

    Attributes:
        values: the largest weight of each block.
        shown: the same without hidden cells, whose share of a row stays theirs; None unless any were hidden.
        means: of each block the mean of its weights, blocked cells left out, 0 where all are; None unless asked for.
        normalisers: by query, the logarithm of what its exponentials sum to, sinks included: a weight is
            exp(logit − normaliser). Infinite where a query may look at nothing.
        sums: what each query's weights sum to: 1, less with sinks, 0 where it may look at nothing.
        shape: queries and keys.
        size: queries and keys of a block; the last blocks may have fewer.
        closed: whether the mask hides what lies ahead, and nothing else.
    """

    values: Float[numpy.ndarray, "row column"]
    shown: Float[numpy.ndarray, "row column"] | None
    means: Float[numpy.ndarray, "row column"] | None
    normalisers: Float[numpy.ndarray, " query"]
    sums: Float[numpy.ndarray, " query"]
    shape: tuple[int, int]
    size: tuple[int, int]
    closed: bool


def overview(
    call: Attention, side: int = SIDE, *, means: bool = False, hidden: Bool[Tensor, "query key"] | None = None
) -> Overview:
    """The map of one head and the normaliser of each of its rows, without the whole matrix ever in memory.

    Args:
        call: one head's, query (query, d_k).
        side: how many blocks there are along each side at most.
        means: whether the mean of each block is wanted, too.
        hidden: cells without which the largest weight of each block is wanted, too.

    Raises:
        ShapeError: the call has a head axis, or fewer than 1 block was asked for.
        TraceError: weights that are not numbers.
    """
    if len(call.shape) != 2 or side < 1:
        raise ShapeError(f"one head's call and 1 block or more are needed; got weights {call.shape} and {side} blocks")
    queries, keys = call.shape
    size = -(-queries // side), -(-keys // side)
    normalisers, sums = numpy.empty(queries), numpy.empty(queries, numpy.float32)
    values, shown, sums_of_blocks = list[numpy.ndarray](), list[numpy.ndarray](), list[numpy.ndarray]()
    # Of a mask that only hides what lies ahead nothing is looked up: of 8,000 tokens that is half of the time.
    closed, room = is_causal(call.allowed, call.shape), torch.empty(0)
    with torch.no_grad():
        for rows in _slices(queries, keys, size[0]):
            logits, room = _logits(call, rows, room, closed=closed)
            most, total, all_of_it = _exponentials(logits, call.sinks)
            values.append(_pooled(torch.amax, logits, all_of_it, keys, size))
            if means:
                sums_of_blocks.append(_pooled(torch.sum, logits, all_of_it, keys, size))
            if hidden is not None:
                _ = logits.masked_fill_(hidden[rows, : logits.shape[1]], 0)
                shown.append(_pooled(torch.amax, logits, all_of_it, keys, size))
            normalisers[rows] = (most.double() + all_of_it.double().log()).masked_fill(all_of_it == 0, math.inf).cpu()
            sums[rows] = (total / all_of_it).nan_to_num(0).cpu()
    found = numpy.concatenate(values)
    if not numpy.isfinite(found).all():
        raise TraceError("the head has weights that are not numbers; it can't be drawn")
    average = numpy.concatenate(sums_of_blocks) / _open_cells(call, size, closed=closed) if means else None
    rest = None if hidden is None else numpy.concatenate(shown)
    return Overview(found, rest, average, normalisers, sums, (queries, keys), size, closed)


def _slices(queries: int, keys: int, block: int) -> list[slice]:
    """Rows in whole blocks, as many at a time as fit into the cache."""
    step = max(1, min(_LOGITS_AT_A_TIME // max(1, keys * block), -(-queries // (block * _PARTS)))) * block
    return [slice(start, min(start + step, queries)) for start in range(0, queries, step)]


def _logits(call: Attention, rows: slice, room: Tensor, *, closed: bool) -> tuple[Tensor, Tensor]:
    """The logits of some rows up to the last key that any of them may look at, in memory that is used again."""
    query, key = widened(call.query[rows]), widened(call.key)
    allowed = None if call.allowed is None else call.allowed[rows] if len(call.allowed) > 1 else call.allowed
    if closed:
        key = key[: rows.stop]
    elif allowed is not None:
        open_keys = allowed.any(dim=0)
        end = int(open_keys.nonzero()[-1]) + 1 if bool(open_keys.any()) else 1
        key, allowed = key[:end], allowed[:, : end if allowed.shape[1] > 1 else 1]
    if room.shape[:1] != (len(query) * call.shape[1],) or room.dtype != query.dtype:
        room = query.new_empty(len(query) * call.shape[1])
    logits = torch.mm(query * call.scale, key.T, out=room[: len(query) * len(key)].view(len(query), len(key)))
    if call.softcap is not None:
        logits.div_(call.softcap).tanh_().mul_(call.softcap)
    if call.bias is not None:
        bias = call.bias[rows] if len(call.bias) > 1 else call.bias
        logits.add_(bias[:, : len(key)] if bias.shape[1] > 1 else bias)
    if closed:
        ahead = torch.ones(len(query), len(query), dtype=torch.bool, device=logits.device).triu(1)
        logits[:, rows.start :].masked_fill_(ahead, -math.inf)
    elif allowed is not None and not bool(allowed.all()):
        logits.masked_fill_(~allowed, -math.inf)
    return logits, room


def _exponentials(logits: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Turn logits into exponentials, in place: of each row its largest logit, their sum, and that with the sink's."""
    most = logits.amax(dim=1)
    if sinks is not None:
        most = torch.where(most == -math.inf, most, most.clamp_min(float(sinks)))
    most = most.masked_fill(most == -math.inf, 0)
    total = logits.sub_(most[:, None]).exp_().sum(dim=1)
    sink = torch.zeros_like(most) if sinks is None else (float(sinks) - most).exp().masked_fill(total == 0, 0)
    return most, total, total + sink


def _pooled(
    pool: Callable[..., Tensor], exponentials: Tensor, total: Tensor, keys: int, size: tuple[int, int]
) -> numpy.ndarray:
    """The largest weight of each block, or their sum, blocks beyond the last key being 0."""
    rows, width = exponentials.shape
    whole = width // size[1] * size[1]
    parts = [pool(exponentials[:, :whole].view(rows, -1, size[1]), dim=2)] if whole else []
    if whole < width:
        parts.append(pool(exponentials[:, whole:], dim=1, keepdim=True))
    found = torch.cat(parts, dim=1) / total.masked_fill(total == 0, 1)[:, None]
    across = -(-keys // size[1])
    found = torch.nn.functional.pad(found, (0, across - found.shape[1], 0, -rows % size[0]))
    return pool(found.view(-1, size[0], across), dim=1).float().cpu().numpy()


def _open_cells(call: Attention, size: tuple[int, int], *, closed: bool) -> numpy.ndarray:
    """How many cells of each block a query may look at; 1 where there are none, which nothing is divided by."""
    queries, keys = call.shape
    across, down = numpy.arange(0, keys, size[1]), numpy.arange(0, queries, size[0])
    widths = numpy.diff(across, append=keys)
    if call.allowed is None:
        return numpy.outer(numpy.diff(down, append=queries), widths)
    if closed:
        return _causal_cells(queries, keys, size)
    allowed = numpy.broadcast_to(call.allowed.cpu().numpy(), call.shape)
    rows = [
        numpy.add.reduceat(allowed[start : start + size[0]].sum(axis=0, dtype=numpy.int32), across) for start in down
    ]
    return numpy.maximum(rows, 1)


@functools.lru_cache(maxsize=4)
def _causal_cells(queries: int, keys: int, size: tuple[int, int]) -> numpy.ndarray:
    """The same where a query may look at itself and what came before: equal for all heads of a text."""
    across, down = numpy.arange(0, keys, size[1]), numpy.arange(0, queries, size[0])
    of_rows = numpy.clip(numpy.arange(1, queries + 1)[:, None] - across, 0, numpy.diff(across, append=keys))
    found = numpy.maximum(numpy.add.reduceat(of_rows, down), 1)
    found.flags.writeable = False
    return found
