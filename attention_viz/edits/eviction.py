"""Cache eviction of a decoder's keys.

Source: Xiao et al. 2024, "Efficient Streaming Language Models with Attention Sinks", section 3.2: keep the first keys
and the last. Unlike there, kept keys keep their positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attention_viz.edits.words import EVICTION
from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole

__all__ = ["Evict"]


@dataclass(frozen=True)
class Evict:
    """Old keys are thrown away before each token that a decoder reads of those it chose itself; the text is read whole.

    A token's own key is there in addition. Keys that stay keep their positions, rotary ones too.

    Attributes:
        first: how many keys stay at the start of the text.
        last: how many of those before the token stay.

    Raises:
        ShapeError: no whole numbers, fewer first keys than 0, or fewer last ones than 1.
    """

    first: int = 4
    last: int = 16

    def __post_init__(self) -> None:
        """Refuse what leaves nothing to look at."""
        for name, least in (("first", 0), ("last", 1)):
            value = getattr(self, name)
            if not is_whole(value) or value < least:
                raise ShapeError(f"{value!r} {name} keys were to stay; it has to be a whole number, {least} or more")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return (
            f"{EVICTION}of the keys before each token that the model chose itself, the first {self.first} and the last "
            f"{self.last} stay, at their own positions"
        )

    def kept(self, count: int) -> Sequence[int]:
        """The positions that stay of so many keys."""
        start = max(self.first, count - self.last)
        return [*range(min(self.first, count)), *range(start, count)]
