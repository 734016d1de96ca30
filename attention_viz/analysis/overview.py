"""A long text's head as a map of blocks."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.analysis.blocks import refuse_broken
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.reach import first_keys, is_causal, reach
from attention_viz.operation.shapes import widened
from attention_viz.operation.terms import has_others

# Blocks along each side of a map, at most.
SIDE = 512
# How many logits are computed at a time: 2 MiB, so that what follows finds them in the processor's cache; and of how
# many keys, so that the products are of matrices that are no strips.
LOGITS_AT_A_TIME, KEYS_AT_A_TIME = 500_000, 1_000
# In how many parts the rows of a mask are taken at least: of a decoder's first rows no key of its last is computed.
_PARTS = 4
# Exponentials of logits up to here are neither too large nor too small to be added up as they are.
_NEAR = 16.0
# The terms that are computed with in reused memory; a call with others computes its logits itself, more slowly.
_TERMS = ("query", "key", "value", "allowed", "scale", "bias", "softcap", "sinks")


@dataclass(frozen=True, eq=False)
class Overview:
    """A long text's head in blocks.

    Attributes:
        values: each block's largest weight.
        shown: its largest unhidden weight; None if none are hidden.
        means: over open cells, 0 for none; optional.
        normalisers: by query, sinks included: weight = exp(logit − normaliser); infinite if blocked.
        sums: each query's total, below 1 with sinks, 0 if blocked.
        size: a block's queries and keys; the last may have fewer.
        closed: whether the mask is exactly causal.
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
    call: Attention,
    side: int | tuple[int, int] = SIDE,
    *,
    means: bool = False,
    hidden: Bool[Tensor, "query key"] | None = None,
    first: Int[Tensor, " query"] | None = None,
) -> Overview:
    """Map one head and its rows' normalisers, never wholly in memory, in at most `side` blocks a side."""
    down, across = (side, side) if isinstance(side, int) else side
    if len(call.shape) != 2 or min(down, across) < 1:
        raise ShapeError(
            f"an overview needs one head's call and 1 block or more; got weights {call.shape} and {side} blocks"
        )
    queries, keys = call.shape
    size = -(-queries // down), -(-keys // across)
    normalisers, sums = numpy.empty(queries), numpy.empty(queries, numpy.float32)
    found = {name: list[numpy.ndarray]() for name in ("values", "shown", "means")}
    # Of a mask that leaves each row its first keys nothing is looked up: of 8,000 tokens that is half of the time.
    closed = first is None and is_causal(call.allowed, call.shape)
    if first is None:
        first = torch.arange(1, queries + 1) if closed else first_keys(call.allowed, call.shape)
    with torch.no_grad():
        for rows in _slices(queries, keys, size, 1 if call.allowed is None else _PARTS):
            part = _MapRows(call, rows, size, means=means, hidden=hidden, first=first)
            most, total, all_of_it = part.sums(call.sinks)
            normalisers[rows] = (most.double() + all_of_it.double().log()).masked_fill(all_of_it == 0, math.inf).cpu()
            sums[rows] = (total / all_of_it).nan_to_num(0).cpu()
            for name, blocks in part.blocks(most, all_of_it).items():
                found[name].append(blocks)
    values, shown, totals = (numpy.concatenate(blocks) if blocks else None for blocks in found.values())
    assert values is not None
    refuse_broken(values)
    average = None if totals is None else totals / _open_cells(call, size, closed=closed)
    return Overview(values, shown, average, normalisers, sums, (queries, keys), size, closed)


def _slices(queries: int, keys: int, size: tuple[int, int], parts: int) -> list[slice]:
    wide, block = min(keys, _wide(size)), size[0]
    step = max(1, min(LOGITS_AT_A_TIME // max(1, wide * block), -(-queries // (block * parts)))) * block
    return [slice(start, min(start + step, queries)) for start in range(0, queries, step)]


def _wide(size: tuple[int, int]) -> int:
    return max(1, KEYS_AT_A_TIME // size[1]) * size[1]


class _MapRows:
    """Some rows of a map, reduced part by part.

    Exponentials are over each part's largest logit until the normaliser is known; over 0 if all are small, which saves
    a pass. Shape (key, query), because its sums are several times faster.
    """

    def __init__(
        self,
        call: Attention,
        rows: slice,
        size: tuple[int, int],
        *,
        means: bool,
        hidden: Tensor | None,
        first: Tensor | None,
    ) -> None:
        self._size, self._keys = size, call.shape[1]
        self._largest, self._over, self._totals = list[Tensor](), list[Tensor](), list[Tensor]()
        self._values, self._shown, self._means = list[Tensor](), list[Tensor](), list[Tensor]()
        query, room = (widened(call.query[rows]) * call.scale).T, torch.empty(0)
        nothing = query.new_zeros(query.shape[1])
        few = None if first is None else first[rows]
        stop = reach(call.allowed, rows, self._keys) if few is None else max(1, int(few.max()))
        # Of few rows more keys are taken at a time: as many logits are as quickly made.
        wide = max(_wide(size), LOGITS_AT_A_TIME // query.shape[1] // size[1] * size[1])
        for start in range(0, stop, wide):
            columns = slice(start, min(start + wide, -(-stop // size[1]) * size[1], self._keys))
            allowed = None if few is not None or call.allowed is None else _part(call.allowed, rows, columns)
            if allowed is not None and not _any(allowed):
                self._leave_out(columns, query, means=means, hidden=hidden is not None)
                continue
            cells = (columns.stop - start) * query.shape[1]
            if room.numel() < cells or room.dtype != query.dtype:
                room = query.new_empty(cells)
            logits = _logits(call, query, rows, columns, room[:cells].view(-1, query.shape[1]), allowed, few)
            self._values.append(_pooled(torch.amax, logits, size[1]))
            if hidden is not None:
                unseen = hidden[rows, columns].T
                self._shown.append(_pooled(torch.amax, logits.masked_fill(unseen, -math.inf), size[1]))
            self._largest.append(self._values[-1].amax(dim=0))
            near = _is_near(self._largest[-1])
            self._over.append(nothing if near else self._largest[-1])
            exponentials = (logits if near else logits.sub_(_finite(self._largest[-1]))).exp_()
            if means:
                self._means.append(_pooled(torch.sum, exponentials, size[1]))
            self._totals.append((self._means[-1] if means else exponentials).sum(dim=0))

    def _leave_out(self, columns: slice, query: Tensor, *, means: bool, hidden: bool) -> None:
        blocks = -(-(columns.stop - columns.start) // self._size[1])
        nothing = query.new_full((blocks, query.shape[1]), -math.inf)
        self._values.append(nothing)
        if hidden:
            self._shown.append(nothing)
        self._largest.append(nothing[0])
        self._over.append(nothing[0])
        if means:
            self._means.append(torch.zeros_like(nothing))
        self._totals.append(torch.zeros_like(nothing[0]))

    def sums(self, sinks: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return each row's largest logit and exponential sum, without and with sink."""
        most = torch.stack(self._largest).amax(dim=0)
        if sinks is not None:
            most = torch.where(most == -math.inf, most, most.clamp_min(float(sinks)))
        most = _finite(most)
        total = (torch.stack(self._totals) * (torch.stack(self._over) - most).exp()).sum(dim=0)
        sink = torch.zeros_like(most) if sinks is None else (float(sinks) - most).exp().masked_fill(total == 0, 0)
        return most, total, total + sink

    def blocks(self, most: Tensor, all_of_it: Tensor) -> dict[str, numpy.ndarray]:
        """Return each block's largest weight, unhidden largest, and sum, by name."""
        divisor = all_of_it.masked_fill(all_of_it == 0, 1)
        found = {
            name: self._down(torch.amax, (torch.cat(parts) - most).exp() / divisor)
            for name, parts in (("values", self._values), ("shown", self._shown))
            if parts
        }
        if self._means:
            over = [part * (top - most).exp() for part, top in zip(self._means, self._over, strict=True)]
            found["means"] = self._down(torch.sum, torch.cat(over) / divisor)
        return found

    def _down(self, pool: Callable[..., Tensor], weights: Tensor) -> numpy.ndarray:
        """(block, query) to block rows; 0 beyond the last key."""
        across = -(-self._keys // self._size[1])
        found = torch.nn.functional.pad(weights.T, (0, across - len(weights), 0, -weights.shape[1] % self._size[0]))
        return pool(found.view(-1, self._size[0], across), dim=1).float().cpu().numpy()


def _logits(
    call: Attention,
    query: Tensor,
    rows: slice,
    columns: slice,
    room: Tensor,
    allowed: Tensor | None,
    few: Tensor | None,
) -> Tensor:
    """Logits in reused memory, -inf if blocked."""
    if has_others(call, _TERMS):
        logits = call.rows(rows).masked[:, columns].T.contiguous()
    else:
        logits = torch.mm(widened(call.key[columns]), query, out=room)
        if call.softcap is not None:
            logits.div_(call.softcap).tanh_().mul_(call.softcap)
        if call.bias is not None:
            logits.add_(_part(call.bias, rows, columns))
    if few is not None and (begin := max(columns.start, int(few.min()))) < columns.stop:
        ahead = torch.arange(begin, columns.stop)[:, None] >= few
        logits[begin - columns.start :].masked_fill_(ahead.to(logits.device), -math.inf)
    elif allowed is not None and not bool(allowed.view(torch.uint8).amin()):
        logits.masked_fill_(~allowed, -math.inf)
    return logits


def _part(term: Tensor, rows: slice, columns: slice) -> Tensor:
    term = term[rows] if len(term) > 1 else term
    return (term[:, columns] if term.shape[1] > 1 else term).T


def _any(allowed: Tensor) -> bool:
    """By largest and smallest, many times faster on bytes."""
    return bool(allowed.view(torch.uint8).amax())


def _is_near(largest: Tensor) -> bool:
    low, high = largest.aminmax()
    return float(low) >= -_NEAR and float(high) <= _NEAR


def _finite(most: Tensor) -> Tensor:
    """0 in fully blocked rows."""
    return most.masked_fill(most == -math.inf, 0)


def _pooled(pool: Callable[..., Tensor], cells: Tensor, length: int) -> Tensor:
    """(block, query): each key block's maximum or sum."""
    keys, queries = cells.shape
    whole = keys // length * length
    parts = [pool(cells[:whole].view(-1, length, queries), dim=1)] if whole else []
    if whole < keys:
        parts.append(pool(cells[whole:], dim=0, keepdim=True))
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _open_cells(call: Attention, size: tuple[int, int], *, closed: bool) -> numpy.ndarray:
    """1 for none, to divide by."""
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
    across, down = numpy.arange(0, keys, size[1]), numpy.arange(0, queries, size[0])
    of_rows = numpy.clip(numpy.arange(1, queries + 1)[:, None] - across, 0, numpy.diff(across, append=keys))
    found = numpy.maximum(numpy.add.reduceat(of_rows, down), 1)
    found.flags.writeable = False
    return found
