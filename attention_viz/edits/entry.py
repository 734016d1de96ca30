"""The fields of an `EDITS` entry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.edits.asks import Asks
from attention_viz.edits.change import Change

if TYPE_CHECKING:
    from attention_viz.edits.edit import Edit
    from attention_viz.trace.trace import Trace

__all__ = ["EditKind", "Spell"]

# Writes a token's label in a sentence.
Spell = Callable[[str], str]


@dataclass(frozen=True)
class EditKind:
    """One kind of change that a person can choose.

    Attributes:
        name: as the address writes it, in small letters.
        label: what the picker calls it.
        asks: what has to be chosen for it beside its place, and how that is written and read.
        example: one of it as the address writes it, without its place.
        words: a change of this kind as a sentence, from the change, the trace before it, and how tokens are written.
        short: what the changed head is called among others, such as "that says nothing".
        make: the edits of the model, from the change and the trace before it.
        misfit: why a change whose place and cells are there can't be made nevertheless; empty where it can.
    """

    name: str
    label: str
    asks: Asks
    example: str
    words: "Callable[[Change, Trace, Spell], str]"
    short: Callable[[Change], str]
    make: "Callable[[Change, Trace], tuple[Edit, ...]]"
    misfit: "Callable[[Change, Trace], str]" = lambda change, trace: ""
