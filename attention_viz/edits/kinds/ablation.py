"""Ablation of a head's output to 0 or its mean."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.change import EditKind, Nothing, heads_of
from attention_viz.edits.edit import rows_of_each_head
from attention_viz.edits.places import check_head, check_whole, where
from attention_viz.edits.words import subject_of
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import shared_heads, widened
from attention_viz.operation.token_mixer import TokenMixer

__all__ = ["KINDS", "Ablate"]


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
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what nothing can become."""
        check_whole("layer", self.layer)
        check_whole("head", self.head)
        if self.to not in ("zero", "mean"):
            raise ShapeError(f'a head\'s output can become "zero" or its "mean"; got {self.to!r}')
        if self.rows is not None and (self.rows.dtype != torch.bool or self.rows.ndim != 1):
            found = f"{self.rows.dtype} {tuple(self.rows.shape)}"
            raise ShapeError(
                f"rows has to be boolean, (query,), True for those that the mean is taken over; got {found}"
            )

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"ablate: the output becomes {'0' if self.to == 'zero' else 'its mean'} in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Ablate":
        """The edit with rows of its own; a mean is taken over those that aren't padding, unless it says over which."""
        if self.to != "mean":
            return self
        rows = real if self.rows is None else self.rows
        return replace(self, rows=None if rows is None else rows.clone())

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """The call with a value of the head's own."""
        check_head(self, place[1], attention.shape[0])
        value = rows_of_each_head(shared_heads(attention.value, attention.query), attention)
        value[self.head] = 0 if self.to == "zero" else _mean(self, attention)
        return replace(attention, value=value)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """The call with a value of 0 for the head or channel."""
        check_head(self, place[1], mixer.shape[0])
        if self.to != "zero":
            raise ShapeError(f'layer {self.layer} has no softmax, so its heads have no mean to become; use to="zero"')
        value = mixer.value.expand(mixer.shape[0], *mixer.value.shape[-2:]).clone()
        value[self.head] = 0
        return replace(mixer, value=value)


def _mean(edit: Ablate, attention: Attention) -> Tensor:
    place, one = f"the mean of layer {edit.layer}, head {edit.head}", attention.head(edit.head)
    if one.sinks is not None and not bool(torch.isneginf(one.sinks).all()):
        raise UnsupportedModel(
            f"{place} was asked for, and its rows sum to less than 1 since an attention sink takes a share: no values "
            'give each row the mean; to="zero" can be done'
        )
    queries = attention.shape[1]
    rows = torch.ones(queries, dtype=torch.bool) if edit.rows is None else edit.rows
    if rows.shape != (queries,) or not bool(rows.any()):
        raise ShapeError(f"{place} needs rows for {queries} queries, one or more of them True; got {rows.tolist()}")
    rows = rows.to(attention.query.device)
    empty = None if one.allowed is None else ~one.allowed.expand(one.shape).any(dim=-1) & rows
    if empty is not None and bool(empty.any()):
        raise ShapeError(f"{place} was asked for, and query {int(empty.int().argmax())} may look at nothing")
    output = one.output[rows]
    return widened(output).mean(dim=0).to(output.dtype)


KINDS = (
    EditKind(
        name="zero",
        label="it says nothing",
        asks=Nothing(),
        example="zero",
        words=lambda change, trace, spell: f"{subject_of(change, trace)} says nothing (its output is 0)",
        short=lambda change: "that says nothing",
        make=lambda change, trace: tuple(Ablate(*one, "zero", change.stream) for one in heads_of(change, trace)),
    ),
    EditKind(
        name="mean",
        label="it always says its average",
        asks=Nothing(),
        example="mean",
        words=lambda change, trace, spell: f"{subject_of(change, trace)} always says its average",
        short=lambda change: "that always says its average",
        make=lambda change, trace: tuple(Ablate(*one, "mean", change.stream) for one in heads_of(change, trace)),
    ),
)
