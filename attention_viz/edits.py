"""Changes made inside a model while it runs, in the same place where recording happens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.errors import ShapeError

__all__ = ["Allow", "Edit", "check_places", "narrow"]


@dataclass(frozen=True, eq=False)
class Allow:
    """A mask and-ed with the model's own: it can only take away, never open what the model blocks.

    Attributes:
        allowed: True where a query may look at a key, (query, key).
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.
    """

    allowed: Bool[Tensor, "query key"]
    layer: int | None = None
    head: int | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no mask of one matrix."""
        if not isinstance(self.allowed, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"allowed has to be a tensor, (query, key); got {type(self.allowed).__name__}")
        if self.allowed.dtype != torch.bool or self.allowed.ndim != 2:
            raise ShapeError(
                f"allowed has to be boolean, (query, key), True where a query may look; got {self.allowed.dtype} "
                f"{tuple(self.allowed.shape)}"
            )

    def __str__(self) -> str:
        """In words, as it stands in a trace's provenance."""
        queries, keys = self.allowed.shape
        blocked = int((~self.allowed).sum())
        where = ["all layers" if self.layer is None else f"layer {self.layer}"]
        where.append("all heads" if self.head is None else f"head {self.head}")
        where += [] if self.stream is None else [f"of the {self.stream}"]
        return f"allow: {blocked} of {queries} × {keys} cells blocked in {', '.join(where)}"


Edit = Allow


def check_places(edits: Sequence[Edit], layers: Mapping[str, int]) -> None:
    """Refuse an edit that would change nothing, since the layer it names isn't there.

    Args:
        edits: all edits of a run.
        layers: how many layers each stream of the model has.

    Raises:
        ShapeError: an edit for a layer or stream that the model doesn't have, or for no stream where it has several.
    """
    for edit in edits:
        if edit.stream not in layers and (edit.stream is not None or len(layers) > 1):
            asked = "without its stream" if edit.stream is None else f"for the {edit.stream}"
            raise ShapeError(f"a mask was asked for {asked}; the model has {', '.join(layers)}")
        count = layers[edit.stream or next(iter(layers))]
        there = "only layer 0" if count == 1 else f"layers 0 to {count - 1}"
        if edit.layer is not None and not 0 <= edit.layer < count:
            raise ShapeError(f"a mask for layer {edit.layer} was asked for; the model has {there}")


def narrow(
    edits: Sequence[Edit], place: tuple[str, int], heads: int, shape: tuple[int, int], own: Bool[Tensor, "..."] | None
) -> Bool[Tensor, "..."] | None:
    """The model's own mask of one layer with every edit that concerns it and-ed on.

    Args:
        edits: all edits of the run.
        place: the layer's stream, and its place there, from 0.
        heads: how many heads the layer has.
        shape: (query, key) of its weights.
        own: the model's own mask, None where it blocks nothing.

    Raises:
        ShapeError: an edit that doesn't fit the layer's matrix or names a head it doesn't have.
    """
    stream, layer = place
    for edit in edits:
        if edit.stream not in (None, stream) or edit.layer not in (None, layer):
            continue
        if tuple(edit.allowed.shape) != shape:
            raise ShapeError(
                f"a mask of {tuple(edit.allowed.shape)} was asked for; this text needs (query, key) = {shape}"
            )
        if edit.head is not None and not 0 <= edit.head < heads:
            raise ShapeError(f"a mask for head {edit.head} was asked for; layer {layer} has heads 0 to {heads - 1}")
        mask = edit.allowed if own is None else edit.allowed.to(own.device)
        if edit.head is not None:
            chosen = torch.arange(heads, device=mask.device)[:, None, None] == edit.head
            mask = mask | ~chosen
        own = mask if own is None else own & mask
    return own
