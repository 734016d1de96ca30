"""Changes made inside a model while it runs, in the same place where recording happens."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.edits.places import check_head, check_places, check_shape, check_whole, concerns, where
from attention_viz.errors import ShapeError

__all__ = ["Ablate", "Allow", "Block", "Edit", "Replace", "Temperature", "check_places", "narrow"]

# How far the rows of given weights may be from summing to 1.
_ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class Allow:
    """A mask and-ed with the model's own: it can only take away, never open what the model blocks.

    Attributes:
        allowed: True where a query may look at a key, (query, key).
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.

    Raises:
        ShapeError: `allowed` is no boolean matrix; in a run, it doesn't fit the text, or its place isn't there.
    """

    allowed: Bool[Tensor, "query key"]
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a mask"

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
        return f"allow: {blocked} of {queries} × {keys} cells blocked in {where(self)}"


@dataclass(frozen=True)
class Block:
    """No weight from one position to another: an `Allow` with one cell closed, which needs no matrix.

    Attributes:
        query: the position that may not look, from 0.
        key: the position that it may not look at, from 0.
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.

    Raises:
        ShapeError: a position below 0; in a run, one that the text doesn't have, or a place that isn't there.
    """

    query: int
    key: int
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a block"

    def __post_init__(self) -> None:
        """Refuse what is no position in any text."""
        check_whole("query", self.query)
        check_whole("key", self.key)
        if min(self.query, self.key) < 0:
            raise ShapeError(f"positions count from 0; got query {self.query}, key {self.key}")

    def __str__(self) -> str:
        """In words, as it stands in a trace's provenance."""
        return f"block: query {self.query} may not look at key {self.key} in {where(self)}"


@dataclass(frozen=True)
class Temperature:
    """All that enters the softmax divided by a number: above 1 evens the weights out, below 1 sharpens them.

    Weights become softmax(logits / value), where the logits are the scaled scores after soft-cap and bias, and before
    cells are blocked. A learned attention sink is a logit, too, and is divided with them.

    In a trace, this is the layer's scale, softcap, bias and sinks divided by the number. Where only some heads are
    meant, it is their query, bias and sink; with a softcap, those heads' logits stand in their bias, and their query
    is 0.

    Attributes:
        value: what to divide by; finite, above 0.
        layer: only in this layer; in all by default.
        head: only in this head; in all by default.
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.

    Raises:
        ShapeError: a value that isn't finite and above 0; in a run, one so low that the logits overflow, or a place
            that isn't there.
    """

    value: float
    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    kind: ClassVar[str] = "a temperature"

    def __post_init__(self) -> None:
        """Refuse what can't be divided by."""
        _check_divisor(self.value)

    def __str__(self) -> str:
        """In words, as it stands in a trace's provenance."""
        return f"temperature: what enters the softmax divided by {self.value:g} in {where(self)}"


@dataclass(frozen=True)
class Ablate:
    """What a head hands on, before W_O, becomes 0, or its mean over the positions; its weights stay what they were.

    In a trace, this is the head's own value: 0 at each key, or the mean at each key, of which every row whose weights
    sum to 1 makes the mean again. Key and value heads that are shared are shared no longer then.

    With the mean, a query that may look at nothing, such as padding, goes on handing on 0.

    Attributes:
        layer: the head's layer.
        head: which head.
        to: "zero", or "mean".
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.
        rows: for the mean, True for positions that it is taken over, (query,); by default those that aren't padding,
            as far as the model was told so by its attention mask.

    Raises:
        ShapeError: another word than "zero" or "mean"; in a run, a place that isn't there, `rows` that don't fit the
            text or choose none, or a mean over a row that looks at nothing.
        UnsupportedModel: in a run, a mean where attention sinks take a share of each row.
    """

    layer: int
    head: int
    to: Literal["zero", "mean"] = "zero"
    stream: str | None = None
    rows: Bool[Tensor, " query"] | None = field(default=None, kw_only=True, compare=False)
    kind: ClassVar[str] = "an ablation"

    def __post_init__(self) -> None:
        """Refuse what nothing can become."""
        check_whole("layer", self.layer)
        check_whole("head", self.head)
        if self.to not in ("zero", "mean"):
            raise ShapeError(f'a head\'s output can become "zero" or its "mean"; got {self.to!r}')
        if self.rows is not None and (self.rows.dtype != torch.bool or self.rows.ndim != 1):
            came = f"{self.rows.dtype} {tuple(self.rows.shape)}"
            raise ShapeError(
                f"rows has to be boolean, (query,), True for those that the mean is taken over; got {came}"
            )

    def __str__(self) -> str:
        """In words, as it stands in a trace's provenance."""
        return f"ablate: the output becomes {'0' if self.to == 'zero' else 'its mean'} in {where(self)}"


@dataclass(frozen=True, eq=False)
class Replace:
    """The head's weights become this matrix, and its output weights · value.

    The matrix counts as it is, also where the model's own mask blocks a cell, and it goes past softcap, bias and sinks.
    Rows are divided by their sum, which rounding may have left a little beside 1.

    In a trace, the head's query is 0, its bias the logarithm of the weights, blocked where a weight is 0, and its
    attention sink, where the model has one, −∞.

    Attributes:
        layer: the head's layer.
        head: which head.
        weights: (query, key), finite and not below 0; each row sums to 1, or to 0 for a query that looks at nothing.
        stream: "encoder", "decoder" or "cross"; has to be told where a model has several.

    Raises:
        ShapeError: a matrix that can't be weights; in a run, it doesn't fit the text, or its place isn't there.
    """

    layer: int
    head: int
    weights: Float[Tensor, "query key"]
    stream: str | None = None
    kind: ClassVar[str] = "a replacement"

    def __post_init__(self) -> None:
        """Refuse what can't be weights."""
        check_whole("layer", self.layer)
        check_whole("head", self.head)
        _check_weights(self.weights)

    def __str__(self) -> str:
        """In words, as it stands in a trace's provenance."""
        queries, keys = self.weights.shape
        return f"replace: weights of {queries} × {keys} given in {where(self)}"


Edit = Allow | Block | Temperature | Ablate | Replace


def _check_divisor(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= sys.float_info.max:
        raise ShapeError(f"a temperature has to be a finite number above 0; got {given!r}")


def _check_weights(given: object) -> None:
    if not isinstance(given, Tensor):
        raise ShapeError(f"weights has to be a tensor, (query, key); got {type(given).__name__}")
    if not given.is_floating_point() or given.ndim != 2:
        raise ShapeError(f"weights have to be floating, (query, key); got {given.dtype} {tuple(given.shape)}")
    if not bool(given.isfinite().all()) or bool((given < 0).any()):
        raise ShapeError("weights have to be finite and not below 0; something else came")
    sums = given.double().sum(dim=-1)
    wrong = (((sums - 1).abs() > _ROUNDING) & (sums != 0)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise ShapeError(f"each row of weights has to sum to 1, or to 0; row {row} sums to {float(sums[row]):.4g}")


def narrow(
    edits: Sequence[Allow | Block],
    place: tuple[str, int],
    heads: int,
    shape: tuple[int, int],
    own: Bool[Tensor, "..."] | None,
) -> Bool[Tensor, "..."] | None:
    """The model's own mask of one layer with every edit that concerns it and-ed on.

    Args:
        edits: edits of the run that block cells.
        place: the layer's stream, and its place there, from 0.
        heads: how many heads the layer has.
        shape: (query, key) of its weights.
        own: the model's own mask, None where it blocks nothing.

    Raises:
        ShapeError: an edit that doesn't fit the layer's matrix or names a head it doesn't have.
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


def _allowed(edit: Allow | Block, shape: tuple[int, int]) -> Tensor:
    if isinstance(edit, Allow):
        check_shape(edit, edit.allowed, shape)
        return edit.allowed
    if edit.query >= shape[0] or edit.key >= shape[1]:
        raise ShapeError(
            f"a block of query {edit.query} and key {edit.key} was asked for; this text has {shape[0]} queries and "
            f"{shape[1]} keys, counted from 0"
        )
    allowed = torch.ones(shape, dtype=torch.bool)
    allowed[edit.query, edit.key] = False
    return allowed
