"""Application of edits to calls, in order.

Edits only rewrite a call's terms, so that `attend` still computes everything.
"""

from collections.abc import Mapping, Sequence

from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.places import concerns
from attention_viz.operation.attention import Attention

__all__ = ["edited", "snapshots"]


def snapshots(edits: Sequence[Edit], real: Mapping[str, Bool[Tensor, " query"] | None]) -> tuple[Edit, ...]:
    """Copy edits' tensors, because callers may write into theirs.

    Args:
        real: by stream, queries without padding, the default for means; None if padding is unknown.
    """
    return tuple(edit.snapshot(real[edit.stream or next(iter(real))]) for edit in edits)


def edited(edits: Sequence[Edit], place: tuple[str, int], attention: Attention) -> Attention:
    """Apply all edits of a layer to its call; itself without any."""
    for edit in edits:
        if concerns(edit, place):
            attention = edit.apply(attention, place)
    return attention
