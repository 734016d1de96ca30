"""Something that stands out in a run and could be told."""

from typing import NamedTuple

__all__ = ["Candidate"]


class Candidate(NamedTuple):
    """Something that stands out in a run and could be told.

    Attributes:
        score: how far it stands out, from 0 to 1.
        key: the word that is looked at.
        words: over how many different words the strength is the mean.
        seen: the positions of the query and the key where it is seen best; None for the two pieces of the words with
            the most weight.
    """

    kind: str
    score: float
    strength: float
    stream: str
    layer: int
    head: int
    query: int
    key: int
    words: int = 1
    seen: tuple[int, int] | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """The head: stream, layer, head."""
        return self.stream, self.layer, self.head
