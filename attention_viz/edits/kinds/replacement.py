"""The edit that gives a head other weights."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.edits.change import Change, Drawing, EditKind, Spell, calls_of, heads_of, stream_of
from attention_viz.edits.edit import bias_of_each_head, rows_of_each_head
from attention_viz.edits.places import check_head, check_shape, check_whole, where
from attention_viz.edits.words import rows_of_cells, subject_of
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED
from attention_viz.operation.shapes import check_tensor
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.trace.trace import Trace

__all__ = ["KINDS", "Replace"]


@dataclass(frozen=True, eq=False, repr=False)
class Replace(ShortRepr):
    """Replace a head's weights by a matrix; its output becomes weights · value.

    The matrix also applies to cells that the model's mask blocks, and bypasses softcap, bias and sinks. Rows are
    divided by their sum, which rounding may have moved from 1.

    In a trace, the head's query is 0, its bias the logarithm of the weights, blocked at weight 0, and its attention
    sink, if the model has one, −∞.

    Attributes:
        layer: the head's layer.
        head: the head.
        weights: (query, key), finite and non-negative; each row sums to 1, or to 0 for a query that attends to nothing.
        stream: "encoder", "decoder" or "cross"; required if a model has several.

    Raises:
        ShapeError: a matrix that can't be weights; in a run, it doesn't fit the text, or its place is missing.
    """

    layer: int
    head: int
    weights: Float[Tensor, "query key"]
    stream: str | None = None
    kind: ClassVar[str] = "a replacement"
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the weights."""
        check_whole("layer", self.layer)
        check_whole("head", self.head)
        _check_weights(self.weights)

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        queries, keys = self.weights.shape
        return f"replace: weights of {queries} × {keys} given in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Replace":
        """Return the edit with weights of its own."""
        return replace(self, weights=self.weights.detach().clone())

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with the head's own query, bias and mask, which give these weights."""
        check_head(self, place[1], attention.shape[0])
        heads, queries, keys = attention.shape
        check_shape(self, self.weights, (queries, keys))
        query, bias = rows_of_each_head(attention.query, attention), bias_of_each_head(attention)
        weights = self.weights.to(query.device).double()
        chosen = weights > 0
        shares = weights / weights.sum(dim=-1, keepdim=True)
        query[self.head] = 0
        bias[self.head] = torch.where(chosen, shares, 1).log().to(bias.dtype)
        allowed = attention.allowed
        if allowed is None:
            allowed = torch.ones((), dtype=torch.bool, device=query.device)
        allowed = allowed.expand(heads, queries, keys).clone()
        allowed[self.head] = chosen
        sinks = attention.sinks
        if sinks is not None:
            sinks = sinks.expand(attention.shape[:1]).clone()
            sinks[self.head] = -torch.inf
        return replace(attention, query=query, bias=bias, allowed=allowed, sinks=sinks)


def _check_weights(value: Tensor) -> None:
    check_tensor("weights", value)
    if not value.is_floating_point() or value.ndim != 2:
        raise ShapeError(
            f"weights must be a floating-point matrix, (query, key); got {value.dtype} {tuple(value.shape)}"
        )
    broken = value[~value.isfinite() | (value < 0)]
    if len(broken):
        raise ShapeError(f"weights must be finite and non-negative; got {float(broken[0]):g}")
    sums = value.double().sum(dim=-1)
    wrong = (((sums - 1).abs() > REORDERED) & (sums != 0)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise ShapeError(f"each row of weights must sum to 1, or to 0; row {row} sums to {float(sums[row]):.4g}")


def _drawn(change: Change, trace: Trace, layer: int, head: int) -> Tensor:
    one = trace.attention(layer, stream_of(change, trace)).head(head)
    weights = one.weights.detach().cpu().double()
    drawn = torch.zeros(weights.shape, dtype=torch.bool)
    for cell in change.cells:
        drawn[cell] = True
    rows = drawn.any(dim=-1)
    weights[rows] = drawn[rows].double()
    # A row that looks at nothing stays one; of half a precision, a row's sum may be a little beside 1.
    sums = weights.sum(dim=-1, keepdim=True)
    return (weights / sums.where(sums > 0, 1)).float()


def _misfit(change: Change, trace: Trace) -> str:
    sinks = [call.sinks for call in calls_of(change, trace)]
    if any(one is not None and bool((one > float("-inf")).any()) for one in sinks):
        return "an attention sink takes a share of each row here, so rows without drawn cells would change, too"
    return ""


def _words(change: Change, trace: Trace, spell: Spell) -> str:
    return f"{subject_of(change, trace)} attends as drawn: {rows_of_cells(change, trace, spell)}"


KINDS = (
    EditKind(
        name="draw",
        label="replace weights",
        asks=Drawing(),
        example="draw:2>4,3>4",
        words=_words,
        short=lambda change: "with replaced weights",
        make=lambda change, trace: tuple(
            Replace(layer, head, _drawn(change, trace, layer, head), change.stream)
            for layer, head in heads_of(change, trace)
            if head is not None
        ),
        misfit=_misfit,
    ),
)
