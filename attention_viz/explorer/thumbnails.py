"""The heads of a long text as small pictures, made from a sample of their rows."""

import itertools
from collections.abc import Collection
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from attention_viz.analysis.overview import overview
from attention_viz.explorer.planes import codes_of
from attention_viz.operation.attention import Attention

__all__ = ["BLOCKED", "CODES", "FAINTEST", "SIDE", "Thumbnails", "sampled_rows"]

# Cells along each side, at most.
SIDE = 64
# A cell is a byte: 0 for what is fainter than `FAINTEST`, then `CODES` even steps of the logarithm up to 1.
CODES, FAINTEST, BLOCKED = 254, 1e-4, 255
# How many weights are computed for all pictures of a text together.
_MOST = 40_000_000


def sampled_rows(queries: int, keys: int, heads: int, special: Collection[int] = ()) -> list[int]:
    """Which rows the pictures are made from: evenly spread, as many for each row of a picture as there is time for.

    Args:
        queries: how many rows there are.
        keys: how many columns.
        heads: of all layers together.
        special: rows that a reader may hide; where there is another near one of them, that is taken.
    """
    side = min(SIDE, queries)
    each = max(1, min(_MOST // max(1, heads * keys * side), -(-queries // side)))
    parts = np.linspace(0, queries, side * each + 1)
    near = (_nearest(int((start + end) / 2), int(start), int(end), special) for start, end in itertools.pairwise(parts))
    return sorted(set(near))


def _nearest(place: int, start: int, end: int, special: Collection[int]) -> int:
    """The place itself, or where that is special the nearest between start and end that isn't, if there is one."""
    if place not in special:
        return place
    return min(
        (one for one in range(start, end) if one not in special), key=lambda one: abs(one - place), default=place
    )


_Pictures: TypeAlias = UInt8[np.ndarray, "head column row"]


class Thumbnails:
    """The heads of a long text as pictures; a mask that several layers share is looked at once."""

    def __init__(
        self,
        shape: tuple[int, ...],
        heads: int,
        special: tuple[Collection[int], Collection[int]] = ((), ()),
    ) -> None:
        """Begin with none.

        Args:
            shape: queries and keys.
            heads: how many pictures there will be.
            special: rows and columns that a reader may hide.
        """
        queries, keys = shape
        self.rows = sampled_rows(queries, keys, heads, special[0])
        hidden = torch.zeros(len(self.rows), keys, dtype=torch.bool)
        hidden[[row in special[0] for row in self.rows]] = True
        hidden[:, list(special[1])] = True
        self._hidden = hidden if any(special) else None
        self.side = tuple(-(-count // -(-count // SIDE)) for count in (len(self.rows), keys))
        self._shut: dict[object, tuple[Tensor, NDArray[np.bool_]]] = {}

    def of(self, call: Attention) -> tuple[_Pictures, _Pictures | None]:
        """The heads of a layer: the largest weight under each cell, of the rows that were sampled, as a byte.

        And the same without the rows and columns that a reader may hide, where there are any.
        """
        some = call.rows(self.rows)
        hidden = None if self._hidden is None else self._hidden.to(call.query.device)
        found = [overview(some.head(head), SIDE, hidden=hidden) for head in range(call.shape[0])]
        whole = self._coded(np.stack([one.values for one in found]), call, some)
        shown = [one.shown for one in found if one.shown is not None]
        return whole, self._coded(np.stack(shown), call, some, hidden) if shown else None

    def _coded(
        self,
        found: Float[np.ndarray, "head row column"],
        call: Attention,
        some: Attention,
        hidden: Tensor | None = None,
    ) -> _Pictures:
        """As bytes, those of cells under which nothing is open among them."""
        codes = codes_of(found, CODES, FAINTEST).astype(np.uint8)
        if call.allowed is not None and some.allowed is not None:
            # The mask is kept beside what was found, so that its place in memory can't become another's.
            key = (call.allowed.data_ptr(), call.allowed.shape, hidden is None)
            if key not in self._shut:
                allowed = some.allowed if hidden is None else some.allowed & ~hidden
                self._shut[key] = (call.allowed, _shut(allowed, some.shape, self.side))
            shut = self._shut[key][1]
            codes[np.repeat(shut, len(codes) // len(shut), axis=0)] = BLOCKED
        return codes.swapaxes(1, 2)


def _shut(allowed: Tensor, shape: tuple[int, ...], side: tuple[int, ...]) -> Bool[np.ndarray, "head row column"]:
    """Under which cells of the pictures nothing is open; of one mask for all heads, one picture."""
    open_cells = np.broadcast_to(allowed.cpu().numpy(), (*allowed.shape[:-2], *shape[-2:])).reshape(-1, *shape[-2:])
    for axis, parts in zip((1, 2), side, strict=True):
        length = -(-open_cells.shape[axis] // parts)
        open_cells = np.logical_or.reduceat(open_cells, range(0, open_cells.shape[axis], length), axis=axis)
    return ~open_cells
