"""The interface of all edits, and their application to calls."""

from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.places import Placed, concerns
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import widened

__all__ = ["Edit", "bias_of_each_head", "edited", "rows_of_each_head", "snapshots"]


@runtime_checkable
class Edit(Placed, Protocol):
    """A change made inside a model while it runs, in the same place where recording happens.

    It is a frozen dataclass, so that runs can be told apart by their edits; as text, it is what a trace's provenance
    says of it.

    Attributes:
        masks_only: whether it does no more than block cells, so that any implementation can be given it as a mask.
    """

    masks_only: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Edit":
        """The edit with tensors of its own, as those of whoever asks may be written into while a trace needs them.

        Args:
            real: which queries aren't padding; None where no padding is known of.
        """
        ...

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """What becomes of one layer's call: another call, whose weights and output are the edited ones.

        Args:
            attention: the call, head first: query is (head, query, d_k).
            place: the layer's stream, and its number there.

        Raises:
            ShapeError: the edit doesn't fit the call, or names a head it doesn't have.
            UnsupportedModel: the call's terms can't express the edit.
        """
        ...


def snapshots(edits: Sequence[Edit], real: Mapping[str, Bool[Tensor, " query"] | None]) -> tuple[Edit, ...]:
    """Copy edits' tensors, because callers may write into theirs; `real` has each stream's queries without padding."""
    return tuple(edit.snapshot(real[edit.stream or next(iter(real))]) for edit in edits)


def edited(edits: Sequence[Edit], place: tuple[str, int], attention: Attention) -> Attention:
    """Apply all edits of a layer to its call; itself without any."""
    for edit in edits:
        if concerns(edit, place):
            attention = edit.apply(attention, place)
    return attention


def rows_of_each_head(rows: Tensor, attention: Attention) -> Tensor:
    """Copy query or value per head, (head, position, width)."""
    return rows.expand(attention.shape[0], *rows.shape[-2:]).clone()


def bias_of_each_head(attention: Attention) -> Tensor:
    """Copy the bias per head, (head, query, key), at least float32; 0 without one."""
    bias = attention.query.new_zeros(()) if attention.bias is None else attention.bias
    return widened(bias).expand(attention.shape).clone()
