"""A long text's heads as small pictures of sampled rows."""

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from attention_viz.analysis.overview import overview
from attention_viz.explorer.planes import codes_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.reach import first_keys

# Cells along each side, at most.
SIDE = 64
# A cell is a byte: 0 for what is fainter than `FAINTEST`, then `CODES` even steps of the logarithm up to 1.
CODES, FAINTEST, BLOCKED = 254, 1e-4, 255
# How many weights are computed for all pictures of a text together.
_MOST = 40_000_000
_Pictures: TypeAlias = UInt8[np.ndarray, "head column row"]
_Made = TypeVar("_Made")
_Largest: TypeAlias = Float[np.ndarray, "row column"]


def sampled_rows(queries: int, keys: int, heads: int, special: Collection[int] = ()) -> list[int]:
    """Return evenly spread rows, as many as time allows, avoiding `special` ones."""
    side = min(SIDE, queries)
    each = max(1, min(_MOST // max(1, heads * keys * side), -(-queries // side)))
    parts = np.linspace(0, queries, side * each + 1)
    near = (_nearest(int((start + end) / 2), int(start), int(end), special) for start, end in itertools.pairwise(parts))
    return sorted(set(near))


def _nearest(place: int, start: int, end: int, special: Collection[int]) -> int:
    """Return the position, or the nearest in range that isn't special, if any."""
    if place not in special:
        return place
    return min(
        (one for one in range(start, end) if one not in special), key=lambda one: abs(one - place), default=place
    )


class Thumbnails:
    """A long text's heads as pictures; masks read once."""

    def __init__(
        self,
        shape: tuple[int, ...],
        heads: int,
        special: tuple[Collection[int], Collection[int]] = ((), ()),
    ) -> None:
        """Begin without pictures."""
        queries, keys = shape
        self.rows = sampled_rows(queries, keys, heads, special[0])
        hidden = torch.zeros(len(self.rows), keys, dtype=torch.bool)
        hidden[[row in special[0] for row in self.rows]] = True
        hidden[:, list(special[1])] = True
        self._hidden = hidden if any(special) else None
        self.side = tuple(-(-count // -(-count // SIDE)) for count in (len(self.rows), keys))
        # By a mask's place in memory; it is kept beside what was found, so that its place can't become another's.
        self._of_mask: dict[object, tuple[Tensor, Any]] = {}

    def of(self, call: Attention) -> tuple[_Pictures, _Pictures | None]:
        """Return cells' largest sampled weights, one byte each; also without hidden tokens."""
        some = call.rows(self.rows)
        hidden = None if self._hidden is None else self._hidden.to(call.query.device)
        first = self._first_keys(call, some)
        found = [pair for heads in _together(some) for pair in self._of_heads(*heads, hidden, first)]
        whole = self._coded(np.stack([values for values, _ in found]), call, some)
        shown = [shown for _, shown in found if shown is not None]
        return whole, self._coded(np.stack(shown), call, some, hidden) if shown else None

    def _of_heads(
        self, call: Attention, heads: int, hidden: Tensor | None, first: Tensor | None
    ) -> Iterator[tuple[_Largest, _Largest | None]]:
        hidden, first = (None if one is None else one.repeat_interleave(heads, dim=0) for one in (hidden, first))
        found = overview(call, (call.shape[0], SIDE), hidden=hidden, first=first)
        starts = range(0, len(self.rows), -(-len(self.rows) // SIDE))
        for head in range(heads):
            values, shown = (
                None if one is None else np.maximum.reduceat(one[head::heads], starts, axis=0)
                for one in (found.values, found.shown)
            )
            assert values is not None
            yield values, shown

    def _first_keys(self, call: Attention, some: Attention) -> Tensor | None:
        """Return the number of keys that each row sees from the first on, if that is every head's whole mask."""
        allowed = some.allowed
        if allowed is None or call.allowed is None or not _of_all_heads(allowed):
            return None
        return self._known(call.allowed, "first", lambda: first_keys(allowed.view(allowed.shape[-2:]), some.shape[-2:]))

    def _known(self, mask: Tensor, what: str, make: Callable[[], _Made]) -> _Made:
        key = mask.data_ptr(), mask.shape, what
        if key not in self._of_mask:
            self._of_mask[key] = mask, make()
        return self._of_mask[key][1]

    def _coded(
        self,
        found: Float[np.ndarray, "head row column"],
        call: Attention,
        some: Attention,
        hidden: Tensor | None = None,
    ) -> _Pictures:
        codes = codes_of(found, CODES, FAINTEST).astype(np.uint8)
        if call.allowed is not None and some.allowed is not None:
            allowed = some.allowed
            shut = self._known(
                call.allowed,
                "shut" if hidden is None else "shut or hidden",
                lambda: _shut(allowed if hidden is None else allowed & ~hidden, some.shape, self.side),
            )
            codes[np.repeat(shut, len(codes) // len(shut), axis=0)] = BLOCKED
        return codes.swapaxes(1, 2)


def _together(call: Attention) -> Iterator[tuple[Attention, int]]:
    """Merge heads that share keys into one faster, larger call; yield it and its head count."""
    heads, groups = call.shape[0], call.key.shape[0] if call.key.ndim > 2 else 1
    alike = call.bias is None and call.sinks is None and (call.allowed is None or _of_all_heads(call.allowed))
    size = heads // groups if alike and call.query.ndim > 2 else 1
    for first in range(0, heads, size):
        one = call.head(first)
        allowed = (
            one.allowed if one.allowed is None or len(one.allowed) == 1 else one.allowed.repeat_interleave(size, 0)
        )
        query = call.query[first : first + size].swapaxes(0, 1).flatten(0, 1) if size > 1 else one.query
        yield replace(one, query=query, allowed=allowed), size


def _of_all_heads(allowed: Tensor) -> bool:
    return allowed.ndim < 3 or len(allowed) == 1


def _shut(allowed: Tensor, shape: tuple[int, ...], side: tuple[int, ...]) -> Bool[np.ndarray, "head row column"]:
    """Return cells with nothing open; one picture if heads share a mask."""
    open_cells = np.broadcast_to(allowed.cpu().numpy(), (*allowed.shape[:-2], *shape[-2:])).reshape(-1, *shape[-2:])
    for axis, parts in zip((1, 2), side, strict=True):
        length = -(-open_cells.shape[axis] // parts)
        open_cells = np.logical_or.reduceat(open_cells, range(0, open_cells.shape[axis], length), axis=axis)
    return ~open_cells
