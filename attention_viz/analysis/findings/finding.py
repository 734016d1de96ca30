"""Findings, their kinds and their candidates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["FINDING_KINDS", "Candidate", "Finding", "FindingKind"]


@dataclass(frozen=True)
class Finding:
    """Something in a run that a person should look at: a sentence, and where in the weights it can be seen.

    Attributes:
        kind: what it is, a name in `FINDING_KINDS`.
        stream: the attention in which it was found.
        layer: the layer, by its number.
        head: the head, from 0.
        query: the position that is looking, from 0; of what a head does all over, where it is seen best.
        key: the position that is looked at.
        strength: the number in the sentence: a weight, or its mean over the rows that count. Of words made of several
            pieces the mean over those that look of the sum over those that are looked at, as in `find_heads`; query and
            key are then the two pieces with the most weight. What a head does all over is counted piece by piece.
        parts: the sentence in parts, each with its role: "query" is who looks, "key" what is looked at, "next" the
            token that is likeliest to come next, "number" the strength, "" everything else.
    """

    kind: str
    stream: str
    layer: int
    head: int
    query: int
    key: int
    strength: float
    parts: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(part for part, _ in self.parts)


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding: scores below `least` are a last resort, `interest` counts when kinds compete."""

    meaning: str
    least: float = 0.2
    interest: float = 1.0
    of_a_head: bool = False


FINDING_KINDS: Mapping[str, FindingKind] = {
    "link": FindingKind("A word with a meaning of its own looks at another such word that isn't its neighbour."),
    "pronoun": FindingKind("A pronoun looks back at a word that it may stand for.", interest=1.2),
    "repeat": FindingKind("A word that comes again looks back at where it came before."),
    "next word": FindingKind(
        "What the last row of a decoder looks at, from which the next word is told.", interest=1.3
    ),
    "alignment": FindingKind("A word that is written looks at a word of the text that is read.", 0.5, 1.1),
    "previous": FindingKind("A head in which each word looks at the one before it.", 0.5, 0.2, of_a_head=True),
    "above": FindingKind(
        "A head in which each patch of a picture looks at the one above it.", 0.5, 0.2, of_a_head=True
    ),
    "region": FindingKind(
        "A region of a picture at which several heads of a layer look from its class token.", 0.2, 1.3, of_a_head=True
    ),
    "same token": FindingKind(
        "A head in which words that come again look back at where they came before.", 0.25, 0.9, of_a_head=True
    ),
    "induction": FindingKind(
        "A head in which words that come again look at what followed them last time.", 0.25, 1.2, of_a_head=True
    ),
}


class Candidate(NamedTuple):
    """A candidate for a finding; its score goes from 0 to 1, `seen` is a (query, key) example."""

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
