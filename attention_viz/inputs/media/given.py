"""What is handed to a model that reads no text alone: its tensors, and what is to be known of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from attention_viz.trace.shown.kind import InputKind
from attention_viz.trace.shown.seen import NOTHING, Seen

__all__ = ["InputField"]


@dataclass(frozen=True, eq=False)
class InputField:
    """One input of a model.

    Attributes:
        tensors: what its forward is given, by name.
        seen: the picture or the sound, as it is read.
        named: what picture or sound it is, in words.
        notes: what was done to it, in sentences.
        seconds: how many of the sound are heard, before the silence that fills it up.
    """

    tensors: Mapping[str, Tensor]
    seen: Seen = NOTHING
    named: Mapping[InputKind, str] = field(default_factory=dict[InputKind, str])
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
