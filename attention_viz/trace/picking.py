"""The keys that a layer's indexer picked for attention, and their scores."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.shapes import FLOATING, broadcasts
from attention_viz.operation.short_repr import ShortRepr

__all__ = ["Picking", "check_picking"]


@dataclass(frozen=True, eq=False, repr=False)
class Picking(ShortRepr):
    """The keys that a layer's indexer picked: a query attends to no others.

    Attributes:
        scores: the indexer's scores, not attention's: −∞ for later tokens and padding, ∞ for keys it always picks.
            Heads may share a selection. Indexers of blocks give all keys of a block the same score.
        picked: which keys it picked. Some indexers pick padding, too, which attention then blocks.
    """

    scores: Float[Tensor, "*picking_head query key"]
    picked: Bool[Tensor, "*picking_head query key"]

    @property
    def left_out(self) -> Bool[Tensor, "*picking_head query key"]:
        """The keys that could have been picked, and weren't."""
        return ~self.picked & (self.scores > -torch.inf)

    @property
    def cut(self) -> Float[Tensor, "*picking_head query"]:
        """Each query's lowest finite score among the picked keys; NaN without one."""
        known = self.picked & self.scores.isfinite()
        lowest = torch.where(known, self.scores, torch.inf).amin(-1)
        return lowest.masked_fill(lowest == torch.inf, torch.nan)

    @property
    def margins(self) -> Float[Tensor, "*picking_head query key"]:
        """How far each score is above the cut; below 0 if the key wasn't picked, −∞ if it couldn't be."""
        return self.scores - self.cut[..., None]

    def head(self, index: int, heads: int) -> "Picking":
        """Return one of `heads` attention heads' selection, (query, key)."""
        own = index * len(self.scores) // heads
        return Picking(self.scores[own], self.picked[own])

    def changed(self, change: Callable[[Tensor], Tensor]) -> "Picking":
        """Return the selection with both tensors changed in the same way."""
        return replace(self, scores=change(self.scores), picked=change(self.picked))


def check_picking(name: str, picking: Picking, shape: tuple[int, ...]) -> None:
    """Refuse a selection that doesn't fit a layer's weights, (head, query, key)."""
    scores, picked = picking.scores, picking.picked
    fits = scores.shape == picked.shape and scores.ndim == 3 and scores.shape[1:] == shape[1:]
    if not fits or not len(scores) or shape[0] % len(scores) or not broadcasts(tuple(scores[:1].shape), shape):
        raise TraceError(
            f"{name} needs a selection that fits {shape}; got {tuple(scores.shape)}, {tuple(picked.shape)}"
        )
    if scores.dtype not in FLOATING or picked.dtype != torch.bool or bool(scores.isnan().any()):
        raise TraceError(f"{name} needs scores of numbers and picks of booleans")
    if bool((picked & (scores == -torch.inf)).any()):
        raise TraceError(f"{name} picks a key whose score is −∞")
