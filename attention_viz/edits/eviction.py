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
    """Evict old keys from the KV cache before each token that a decoder generated; the text is read whole.

    A token's own key is there in addition. Kept keys keep their positions, rotary ones too.

    Attributes:
        first: how many keys to keep at the start of the text.
        last: how many to keep of those before the token.

    Raises:
        ShapeError: not whole numbers, or below 0 first keys or 1 last key.
    """

    first: int = 4
    last: int = 16

    def __post_init__(self) -> None:
        """Check both counts."""
        for name, least in (("first", 0), ("last", 1)):
            value = getattr(self, name)
            if not is_whole(value) or value < least:
                raise ShapeError(f"{name} must be a whole number of keys, {least} or more; got {value!r}")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return (
            f"{EVICTION}before each token that the model generated, the cache keeps the first {self.first} and the "
            f"last {self.last} keys, at their own positions"
        )

    def kept(self, count: int) -> Sequence[int]:
        """Return the kept positions of `count` keys."""
        start = max(self.first, count - self.last)
        return [*range(min(self.first, count)), *range(start, count)]
