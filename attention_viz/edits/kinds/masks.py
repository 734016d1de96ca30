"""Edits that block a mask or one cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.change import Change, EditKind, OneCell, Spell, stream_of
from attention_viz.edits.edit import Edit
from attention_viz.edits.places import check_head, check_shape, check_whole, concerns, where
from attention_viz.edits.words import place_of, tokens_of
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import check_tensor
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.kind import MIXER
from attention_viz.trace.trace import Trace

__all__ = ["KINDS", "Allow", "Block", "narrow"]


@dataclass(frozen=True, eq=False, repr=False)
class Allow(ShortRepr):
    """Combine a mask with the model's own by "and": it can only block, never open a blocked cell.

    Attributes:
        allowed: True if a query may attend to a key, (query, key).
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder", "cross" or "mixer"; required if a model has several.

    Raises:
        ShapeError: `allowed` isn't a boolean matrix; in a run, it doesn't fit the text, or its place is missing.
    """

    allowed: Bool[Tensor, "query key"]
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a mask"
    masks_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check that `allowed` is one boolean matrix."""
        check_tensor("allowed", self.allowed)
        if self.allowed.dtype != torch.bool or self.allowed.ndim != 2:
            raise ShapeError(
                "allowed must be boolean, (query, key), True if a query may attend to a key; got "
                f"{self.allowed.dtype} {tuple(self.allowed.shape)}"
            )

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        queries, keys = self.allowed.shape
        blocked = int((~self.allowed).sum())
        return f"allow: {blocked} of {queries} × {keys} cells blocked in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Allow":
        """Return the edit with a mask of its own."""
        return replace(self, allowed=self.allowed.clone())

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with a narrower mask."""
        return _masked(self, place, attention)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the call with blocked cells at 0; the others keep their weights."""
        return _masked_mixer(self, place, mixer)


@dataclass(frozen=True)
class Block:
    """Block the weight from one position to another: an `Allow` with one blocked cell.

    In a layer without a softmax, this subtracts weight · value from the query's output; other weights stay as they are.

    Attributes:
        query: the blocked query position, from 0.
        key: the blocked key position, from 0.
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder", "cross" or "mixer"; required if a model has several.

    Raises:
        ShapeError: a position below 0; in a run, one that the text doesn't have, or a missing place.
    """

    query: int
    key: int
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a block"
    masks_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the positions."""
        check_whole("query", self.query)
        check_whole("key", self.key)
        if min(self.query, self.key) < 0:
            raise ShapeError(f"positions count from 0; got query {self.query}, key {self.key}")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        verb = "gets nothing from" if (self.stream or "").startswith(MIXER) else "may not attend to"
        return f"block: query {self.query} {verb} key {self.key} in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Block":
        """Return the edit itself, which holds no tensor."""
        return self

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with a narrower mask."""
        check_head(self, place[1], attention.shape[0])
        return _masked(self, place, attention)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the call with the cell at 0; the others keep their weights."""
        check_head(self, place[1], mixer.shape[0])
        return _masked_mixer(self, place, mixer)


def narrow(
    edits: Sequence[Allow | Block],
    place: tuple[str, int],
    heads: int,
    shape: tuple[int, int],
    own: Bool[Tensor, "..."] | None,
) -> Bool[Tensor, "..."] | None:
    """Combine a layer's own mask with its edits by "and".

    Args:
        own: None if it blocks nothing.
    """
    for edit in edits:
        if not concerns(edit, place):
            continue
        mask = _allowed(edit, shape)
        check_head(edit, place[1], heads)
        mask = mask if own is None else mask.to(own.device)
        if edit.head is not None:
            chosen = torch.arange(heads, device=mask.device)[:, None, None] == edit.head
            mask = mask | ~chosen
        own = mask if own is None else own & mask
    return own


def _masked(edit: Allow | Block, place: tuple[str, int], attention: Attention) -> Attention:
    heads, queries, keys = attention.shape
    allowed = narrow([edit], place, heads, (queries, keys), attention.allowed)
    assert allowed is not None
    return replace(attention, allowed=allowed.to(attention.query.device).expand(heads, queries, keys))


def _masked_mixer(edit: Allow | Block, place: tuple[str, int], mixer: TokenMixer) -> TokenMixer:
    heads, queries, keys = mixer.shape
    allowed = narrow([edit], (edit.stream or place[0], place[1]), heads, (queries, keys), mixer.allowed)
    assert allowed is not None
    return replace(mixer, allowed=allowed.to(mixer.query.device).expand(heads, queries, keys))


def _allowed(edit: Allow | Block, shape: tuple[int, int]) -> Tensor:
    if isinstance(edit, Allow):
        check_shape(edit, edit.allowed, shape)
        return edit.allowed
    if edit.query >= shape[0] or edit.key >= shape[1]:
        raise ShapeError(
            f"can't block query {edit.query} and key {edit.key}; this text has {shape[0]} queries and {shape[1]} "
            "keys, counted from 0"
        )
    allowed = torch.ones(shape, dtype=torch.bool)
    allowed[edit.query, edit.key] = False
    return allowed


def _block(change: Change, trace: Trace) -> tuple[Edit, ...]:
    return tuple(Block(*cell, change.layer, change.head, change.stream) for cell in change.cells)


def _words(change: Change, trace: Trace, spell: Spell) -> str:
    ((query, key),) = (tokens_of(cell, change, trace, spell) for cell in change.cells)
    if stream_of(change, trace) in trace.mixers:
        key = key[:1].upper() + key[1:]
        return f"{key} contributes nothing to {query} in {place_of(change, trace)}"
    return f"{query[:1].upper()}{query[1:]} may not attend to {key} in {place_of(change, trace)}"


KINDS = (
    EditKind(
        name="block",
        label="block a pair",
        asks=OneCell("Blocked query", "Blocked key"),
        example="block:4>5",
        words=_words,
        short=lambda change: "with that cell blocked",
        make=_block,
        fits=("softmax", "mixer"),
    ),
)
