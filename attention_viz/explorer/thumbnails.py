"""The heads of a long text as small pictures, made from a sample of their rows."""

import numpy as np
from jaxtyping import Bool, UInt8
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


def sampled_rows(queries: int, keys: int, heads: int) -> list[int]:
    """Which rows the pictures are made from: evenly spread, as many for each row of a picture as there is time for.

    Args:
        queries: how many rows there are.
        keys: how many columns.
        heads: of all layers together.
    """
    side = min(SIDE, queries)
    each = max(1, min(_MOST // max(1, heads * keys * side), -(-queries // side)))
    parts = np.linspace(0, queries, side * each + 1)
    return sorted({int(place) for place in (parts[:-1] + parts[1:]) / 2})


class Thumbnails:
    """The heads of a long text as pictures; a mask that several layers share is looked at once."""

    def __init__(self, shape: tuple[int, ...], heads: int) -> None:
        """Begin with none.

        Args:
            shape: queries and keys.
            heads: how many pictures there will be.
        """
        queries, keys = shape
        self.rows = sampled_rows(queries, keys, heads)
        self.side = tuple(-(-count // -(-count // SIDE)) for count in (len(self.rows), keys))
        self._shut: dict[object, tuple[Tensor, NDArray[np.bool_]]] = {}

    def of(self, call: Attention) -> UInt8[np.ndarray, "head column row"]:
        """The heads of a layer: the largest weight under each cell, of the rows that were sampled, as a byte."""
        some = call.rows(self.rows)
        found = np.stack([overview(some.head(head), SIDE).values for head in range(call.shape[0])])
        codes = codes_of(found, CODES, FAINTEST).astype(np.uint8)
        if call.allowed is not None and some.allowed is not None:
            # The mask is kept beside what was found, so that its place in memory can't become another's.
            key = (call.allowed.data_ptr(), call.allowed.shape)
            if key not in self._shut:
                self._shut[key] = (call.allowed, _shut(some.allowed, some.shape, self.side))
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
