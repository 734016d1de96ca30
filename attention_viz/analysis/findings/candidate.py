"""A candidate for a finding."""

from typing import NamedTuple

__all__ = ["Candidate"]


class Candidate(NamedTuple):
    """A candidate for a finding.

    Attributes:
        score: from 0 to 1.
        words: number of words averaged over.
        seen: (query, key) example; None for the words' heaviest pieces.
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
