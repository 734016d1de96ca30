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
from attention_viz.operation.shapes import shared_heads, widened, with_heads
from attention_viz.operation.token_mixer import TokenMixer

__all__ = ["KINDS", "Ablate"]


@dataclass(frozen=True)
class Ablate:
    """Set a head's output, before W_O, to 0 or to its mean over the positions. Its weights don't change.

    A layer without a softmax can only become 0: one head or channel, or all of them with `head=None`.

    In a trace, this changes the head's own value to 0, or to the mean at each key; rows whose weights sum to 1 then
    give the mean again. Shared key and value heads are no longer shared.

    With the mean, a query that may attend to nothing, such as padding, keeps the output 0.

    Attributes:
        layer: the head's layer.
        head: the head or channel; None for all of a layer without a softmax.
        to: "zero", or "mean".
        stream: "encoder", "decoder", "cross" or "mixer"; required if a model has several.
        rows: for the mean, True for the positions to average, (query,); by default those that the model's attention
            mask doesn't mark as padding.

    Raises:
        ShapeError: `to` isn't "zero" or "mean"; in a run, the place is missing, `rows` doesn't fit the text or selects
            none, or the mean includes a fully blocked row.
        UnsupportedModel: in a run, a mean if attention sinks take a share of each row.
    """

    layer: int
    head: int | None
    to: Literal["zero", "mean"] = "zero"
    stream: str | None = None
    rows: Bool[Tensor, " query"] | None = field(default=None, kw_only=True, compare=False)
    kind: ClassVar[str] = "an ablation"
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the layer, the head, `to` and `rows`."""
        check_whole("layer", self.layer)
        if self.head is not None:
            check_whole("head", self.head)
        if self.to not in ("zero", "mean"):
            raise ShapeError(f'to must be "zero" or "mean"; got {self.to!r}')
        if self.rows is not None and (self.rows.dtype != torch.bool or self.rows.ndim != 1):
            found = f"{self.rows.dtype} {tuple(self.rows.shape)}"
            raise ShapeError(f"rows must be boolean, (query,), True for the rows to average; got {found}")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"ablate: the output becomes {'0' if self.to == 'zero' else 'its mean'} in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Ablate":
        """Return the edit with rows of its own, by default all rows but padding."""
        if self.to != "mean":
            return self
        rows = real if self.rows is None else self.rows
        return replace(self, rows=None if rows is None else rows.clone())

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return the call with the head's own value."""
        check_head(self, place[1], attention.shape[0])
        if self.head is None:
            raise ShapeError(f"{self.kind} needs a head; layer {place[1]} has heads 0 to {attention.shape[0] - 1}")
        value = rows_of_each_head(shared_heads(attention.value, attention.query), attention)
        value[self.head] = 0 if self.to == "zero" else _mean(self, attention.head(self.head), attention)
        return replace(attention, value=value)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the call with a value of 0 for the head or channel."""
        check_head(self, place[1], mixer.shape[0])
        if self.to != "zero":
            raise ShapeError(f'layer {self.layer} has no softmax, so its heads have no mean to become; use to="zero"')
        value = rows_of_each_head(with_heads(mixer.value, mixer.shape[0]), mixer)
        value[slice(None) if self.head is None else self.head] = 0
        return replace(mixer, value=value)


def _mean(edit: Ablate, one: Attention, attention: Attention) -> Tensor:
    place = f"the mean of layer {edit.layer}, head {edit.head}"
    if one.sinks is not None and not bool(torch.isneginf(one.sinks).all()):
        raise UnsupportedModel(
            f"can't set {place}: an attention sink takes a share of its rows, so no values give every row the mean. "
            'Use to="zero"'
        )
    queries = attention.shape[1]
    rows = torch.ones(queries, dtype=torch.bool) if edit.rows is None else edit.rows
    if rows.shape != (queries,) or not bool(rows.any()):
        raise ShapeError(f"{place} needs {queries} rows, at least one of them True; got {rows.tolist()}")
    rows = rows.to(attention.query.device)
    empty = None if one.allowed is None else ~one.allowed.expand(one.shape).any(dim=-1) & rows
    if empty is not None and bool(empty.any()):
        raise ShapeError(
            f"{place} can't include query {int(empty.int().argmax())}, which may attend to nothing; leave it "
            "out with rows=…"
        )
    output = one.output[rows]
    return widened(output).mean(dim=0).to(output.dtype)


KINDS = (
    EditKind(
        name="zero",
        label="zero-ablate",
        asks=Nothing(),
        example="zero",
        words=lambda change, trace, spell: f"{subject_of(change, trace)} is zero-ablated: its output is 0",
        short=lambda change: "zero-ablated",
        make=lambda change, trace: tuple(Ablate(*one, "zero", change.stream) for one in heads_of(change, trace)),
        fits=("softmax", "mixer"),
    ),
    EditKind(
        name="mean",
        label="mean-ablate",
        asks=Nothing(),
        example="mean",
        words=lambda change, trace, spell: (
            f"{subject_of(change, trace)} is mean-ablated: its output is its mean over the positions"
        ),
        short=lambda change: "mean-ablated",
        make=lambda change, trace: tuple(Ablate(*one, "mean", change.stream) for one in heads_of(change, trace)),
    ),
)
