"""A chat's segments: whose tokens are where, and how generated tokens continue them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from attention_viz.errors import TraceError
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.spelling import decode
from attention_viz.trace.tokens import Tokens

__all__ = ["SEGMENT_ROLES", "Segment", "answered", "check_segments", "cut_thinking", "segment_names", "text_stream"]

SEGMENT_ROLES = ("system", "user", "thinking", "assistant", "tool", "picture")
# Of one text: more messages than any chat here has.
MOST_SEGMENTS = 4_096
_MARKS = re.compile("</?think>")


@dataclass(frozen=True)
class Segment:
    """Tokens of one message, or of the thinking inside one, without the chat template's own marks.

    Attributes:
        role: "system", "user", "thinking", "assistant", "tool" or "picture".
        start: the first token's position, from 0.
        end: the position after the last token.
    """

    role: str
    start: int
    end: int

    def __post_init__(self) -> None:
        """Refuse an unknown role and impossible positions."""
        if self.role not in SEGMENT_ROLES:
            raise TraceError(f"unknown role {self.role!r:.40}; choose {', '.join(SEGMENT_ROLES)}")
        if not (is_whole(self.start) and is_whole(self.end)) or not 0 <= self.start < self.end:
            raise TraceError(
                f"a segment needs a start from 0 and an end after it, as whole numbers; got {self.start!r:.40} and "
                f"{self.end!r:.40}"
            )
        object.__setattr__(self, "start", int(self.start))
        object.__setattr__(self, "end", int(self.end))

    def __len__(self) -> int:
        """Count the tokens."""
        return self.end - self.start


def check_segments(segments: Iterable[object], tokens: int) -> tuple[Segment, ...]:
    """Return segments in order; refuse overlaps and positions outside the text."""
    found = list[Segment]()
    for one in segments:
        if not isinstance(one, Segment):
            raise TraceError(f"segments must be av.Segment(role, start, end); got {type(one).__name__}")
        found.append(one)
    if len(found) > MOST_SEGMENTS:
        raise TraceError(f"it has {len(found):,} segments; a text has at most {MOST_SEGMENTS:,}")
    found.sort(key=lambda one: one.start)
    for one, other in pairwise(found):
        if other.start < one.end:
            raise TraceError(f"segments can't overlap; got {one} and {other}")
    if found and found[-1].end > tokens:
        raise TraceError(f"{found[-1]} ends after the text, which has {tokens} tokens")
    return tuple(found)


def text_stream(streams: Sequence[str]) -> str:
    """Return the stream whose tokens have segments: the encoder, else the decoder, else the first one."""
    return next((one for one in ("encoder", "decoder") if one in streams), streams[0])


def segment_names(segments: Sequence[Segment]) -> tuple[str, ...]:
    """Name segments by their roles; number a role that occurs several times, from 1: "user 1", "user 2"."""
    counts, seen, names = Counter(one.role for one in segments), Counter[str](), list[str]()
    for one in segments:
        seen[one.role] += 1
        names.append(f"{one.role} {seen[one.role]}" if counts[one.role] > 1 else one.role)
    return tuple(names)


def cut_thinking(text: str, role: str = "assistant") -> list[tuple[str, int, int]]:
    """Cut an assistant's text into thinking and answer: role, start and end in characters, without blanks around.

    A text that closes a thought it hasn't opened begins with thinking, as some templates open it.

    Args:
        role: the role at the text's beginning, "assistant" or "thinking".
    """
    marks = list(_MARKS.finditer(text))
    if marks and marks[0].group() == "</think>":
        role = "thinking"
    parts, start = list[tuple[str, int, int]](), 0
    for mark in marks:
        parts.append((role, start, mark.start()))
        role, start = ("thinking" if mark.group() == "<think>" else "assistant"), mark.end()
    parts.append((role, start, len(text)))
    return [bare for one in parts if (bare := _without_blanks(text, *one)) is not None]


def _without_blanks(text: str, role: str, start: int, end: int) -> tuple[str, int, int] | None:
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    return (role, start + left, start + len(part.rstrip())) if part.strip() else None


def answered(tokens: Tokens, role: str, start: int) -> tuple[Segment, ...]:
    """Return the segments of a generated answer, which begins at a position and ends with the text.

    A token that belongs to a mark, such as "</think>", is part of no segment.

    Args:
        role: the role at its beginning, "assistant" or "thinking".
    """
    pieces = [decode(label, how) for label, how in zip(tokens.labels[start:], tokens.spelling[start:], strict=True)]
    ends = list(accumulate(map(len, pieces)))
    text, begins = "".join(pieces), [0, *ends[:-1]]
    marks = [(one.start(), one.end()) for one in _MARKS.finditer(text)]
    found = list[Segment]()
    for part, first, last in cut_thinking(text, role):
        inside = [
            at
            for at, (begin, end) in enumerate(zip(begins, ends, strict=True))
            if begin < last and end > first and not any(begin < after and end > before for before, after in marks)
        ]
        if inside:
            found.append(Segment(part, start + inside[0], start + inside[-1] + 1))
    return tuple(found)
