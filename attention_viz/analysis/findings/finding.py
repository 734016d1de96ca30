"""Findings, their kinds and their candidates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from attention_viz.trace.files.arrow import PLACES, Column

__all__ = ["FINDING_COLUMNS", "FINDING_KINDS", "Candidate", "Finding", "FindingKind", "NextWordEffects", "WordEffect"]


class WordEffect(NamedTuple):
    """A head's direct effect on the next word's logit minus its rival's."""

    number: float
    word: str
    rival: str


@dataclass(frozen=True, eq=False)
class NextWordEffects:
    """Every head's direct effect on the likeliest next word over its rival.

    Attributes:
        heads: by stream, layer and head.
        sources: a head's effect by the position that its values come from.
    """

    word: str
    rival: str
    heads: Mapping[tuple[str, int, int], float]
    sources: Callable[[tuple[str, int, int]], Mapping[int, float]]


FINDING_COLUMNS = {
    **PLACES,
    "text": Column("the text"),
    "finding": Column("the finding, a sentence"),
    "strength": Column("the number in the sentence: a weight, or its mean over rows", "share of the query"),
    "kind": Column("the kind of finding"),
    "query": Column("the position of the attending token, from 0"),
    "key": Column("the position of the token that is attended to, from 0"),
    "effect": Column("the head's direct effect on the logit of word minus that of rival", "logits"),
    "word": Column("the likeliest next token"),
    "rival": Column("the token that it is compared with"),
}


@dataclass(frozen=True)
class Finding:
    """A finding: a sentence about a run, and its place in the weights.

    Attributes:
        kind: a name in `FINDING_KINDS`.
        stream: its attention type.
        layer: the layer's number.
        head: the head, from 0.
        query: the position that looks, from 0; for a head's job, the clearest example.
        key: the position that is looked at.
        strength: the number in the sentence: a weight, or its mean over the rows that count; in a layer without a
            softmax, the part of the row's size, or the part that is erased. For words of several
            subword tokens, the mean over query tokens of the sum over key tokens, as in `find_heads`; query and key are
            then the two tokens with the largest weight. A head's job is counted token by token.
        parts: the sentence in parts, each with its role: "query" looks, "key" is looked at, "next" is the likeliest
            next token, "number" is the strength, "effect" is the effect, "" is everything else.
        effect: of kind "next word", the head's direct effect on the logit of `word` minus that of `rival`, as in
            `decompose` with `Logit(word, against=rival)`. Positive numbers are for the word. None without a model
            behind the trace, and for other kinds.
        word: the likeliest next token, if there is an effect.
        rival: the likeliest other content word of the text, if its probability is 0.001 or more; else the likeliest
            other token.
    """

    kind: str
    stream: str
    layer: int
    head: int
    query: int
    key: int
    strength: float
    parts: tuple[tuple[str, str], ...]
    effect: float | None = None
    word: str = ""
    rival: str = ""

    @property
    def text(self) -> str:
        """Return the whole sentence."""
        return "".join(part for part, _ in self.parts)


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding: scores below `least` are a last resort, `interest` counts when kinds compete."""

    meaning: str
    least: float = 0.2
    interest: float = 1.0
    of_a_head: bool = False


FINDING_KINDS: Mapping[str, FindingKind] = {
    "link": FindingKind("A content word looks at another that isn't its neighbour."),
    "pronoun": FindingKind("A pronoun looks back at a word that it may refer to.", interest=1.2),
    "repeat": FindingKind("A repeated word looks back at an earlier occurrence."),
    "next word": FindingKind("The last row of a decoder, which predicts the next word, looks at a word.", interest=1.3),
    "alignment": FindingKind("A generated word looks at a word of the source.", 0.5, 1.1),
    "heard": FindingKind(
        "Before a head writes a word of audio, it attends to one third of the word's own time.", 0.6, 1.4
    ),
    "previous": FindingKind("A previous-token head: each word looks at the one before it.", 0.5, 0.2, of_a_head=True),
    "above": FindingKind("A patch-above head: each image patch looks at the one above it.", 0.5, 0.2, of_a_head=True),
    "regions": FindingKind(
        "An image patch, or the class token, looks at two or three compact regions.",
        0.2,
        3.0,
        of_a_head=True,
    ),
    "region": FindingKind(
        "An image region that several heads of a layer look at from the class token.", 0.2, 1.3, of_a_head=True
    ),
    "region of a word": FindingKind("A word of a text beside an image attends to one region.", 0.2, 3.0),
    "same token": FindingKind(
        "A duplicate-token head: repeated words look back at their earlier occurrences.", 0.25, 0.9, of_a_head=True
    ),
    "induction": FindingKind(
        "An induction head: repeated words look at the word that followed last time.", 0.25, 1.2, of_a_head=True
    ),
    "segments": FindingKind(
        "In a chat, the answer draws on the thinking, the question or another segment.", 0.25, 1.5, of_a_head=True
    ),
    "carried": FindingKind("A layer without a softmax carries a distant word's value to another word."),
    "erased": FindingKind("A delta rule erases an earlier word's value as another word comes.", 0.4, 1.2),
}


class Candidate(NamedTuple):
    """A candidate for a finding.

    Attributes:
        score: from 0 to 1.
        seen: a (query, key) example.
        left: the share of the head that its job leaves to links.
        target: the role of the segment that the answer draws on, in a chat.
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
    left: float = 1.0
    effect: WordEffect | None = None
    target: str = ""

    @property
    def place(self) -> tuple[str, int, int]:
        """The head: stream, layer, head."""
        return self.stream, self.layer, self.head
