"""The interface of all edits, and their application to calls."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.places import Placed, concerns, concerns_mixer
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import widened
from attention_viz.operation.token_mixer import TokenMixer

__all__ = ["Edit", "MixerEdit", "bias_of_each_head", "edited", "edited_mixer", "rows_of_each_head", "snapshots"]


@runtime_checkable
class Edit(Placed, Protocol):
    """The interface of an edit: a change inside a model while it runs, made where attention is recorded.

    Edits are frozen dataclasses, so that runs can be compared by them. Their text is the provenance's description.

    Attributes:
        masks_only: True if the edit only blocks cells, so that any attention implementation can take it as a mask.
    """

    masks_only: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Edit":
        """Return the edit with tensors of its own, because callers may overwrite theirs.

        Args:
            real: True for queries that aren't padding; None if unknown.
        """
        ...

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Return one layer's edited call, with the edited weights and output.

        Args:
            attention: the call, head first: query is (head, query, d_k).
            place: the layer's stream, and its number there.

        Raises:
            ShapeError: the edit doesn't fit the call, or names a head it doesn't have.
            UnsupportedModel: the call's terms can't express the edit.
        """
        ...


@runtime_checkable
class MixerEdit(Edit, Protocol):
    """An edit that can also change a layer without a softmax."""

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the edited call of one layer.

        Args:
            mixer: the call, head first.
            place: the layer's stream, and its number there.

        Raises:
            ShapeError: the edit doesn't fit the call, or names a head that it doesn't have.
        """
        ...


def snapshots(edits: Sequence[Edit], real: Mapping[str, Bool[Tensor, " query"] | None]) -> tuple[Edit, ...]:
    """Copy edits' tensors, because callers may write into theirs; `real` has each stream's queries without padding."""
    first = next(iter(real))
    return tuple(edit.snapshot(real.get(edit.stream or first, real[first])) for edit in edits)


def edited(edits: Sequence[Edit], place: tuple[str, int], attention: Attention) -> Attention:
    """Apply all edits of a layer to its call; itself without any."""
    for edit in edits:
        if concerns(edit, place):
            attention = edit.apply(attention, place)
    return attention


def edited_mixer(
    edits: Sequence[Edit], place: tuple[str, int], mixer: TokenMixer, attending: Collection[int]
) -> TokenMixer:
    """Apply all edits of a layer without a softmax; `attending` are the layers that an edit without a stream means."""
    for edit in edits:
        if not concerns_mixer(edit, place, attending):
            continue
        if not isinstance(edit, MixerEdit):
            raise ShapeError(
                f"{edit.kind} can't change layer {place[1]}, which has no softmax; use Ablate, Block or Skip"
            )
        mixer = edit.mix(mixer, place)
    return mixer


def rows_of_each_head(rows: Tensor, call: Attention | TokenMixer) -> Tensor:
    """Copy a term per head, (head, position, width)."""
    return rows.expand(call.shape[0], *rows.shape[-2:]).clone()


def bias_of_each_head(attention: Attention) -> Tensor:
    """Copy the bias per head, (head, query, key), at least float32; 0 without one."""
    bias = attention.query.new_zeros(()) if attention.bias is None else attention.bias
    return widened(bias).expand(attention.shape).clone()
