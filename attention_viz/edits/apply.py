"""A run's edits applied to its calls, one after the other.

Whatever an edit asks for is written into the terms of the call, so that nothing is computed in another way than
`attend` computes it.
"""

from collections.abc import Mapping, Sequence

from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.places import concerns
from attention_viz.operation.attention import Attention

__all__ = ["edited", "snapshots"]


def snapshots(edits: Sequence[Edit], real: Mapping[str, Bool[Tensor, " query"] | None]) -> tuple[Edit, ...]:
    """The edits with tensors of their own, as those of whoever asks may be written into while a trace needs them.

    Args:
        real: by stream, which queries aren't padding; None where no padding is known of. A mean is taken over these,
            unless it says over which.
    """
    return tuple(edit.snapshot(real[edit.stream or next(iter(real))]) for edit in edits)


def edited(edits: Sequence[Edit], place: tuple[str, int], attention: Attention) -> Attention:
    """The call of one layer after every edit that concerns it, one after the other; itself where none does."""
    for edit in edits:
        if concerns(edit, place):
            attention = edit.apply(attention, place)
    return attention
