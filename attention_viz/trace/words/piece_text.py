"""The text of a row of pieces and each piece's characters."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attention_viz.trace.spelling import decode
from attention_viz.trace.words.splitting import kind_of

__all__ = ["OPEN", "PieceText", "begins_with_blank", "goes_on", "keeps_spaces", "meet_as_letters"]

# Separates two pieces if nobody knows whether a space was between them; Unicode has no such character.
OPEN = "\uffff"

# Spellings in which a piece says whether a space is before it. The others say only which piece goes on with a word.
_SPACED = frozenset(("byte-level", "sentencepiece", "bytes"))
# Blanks by themselves, for pieces whose spelling nobody knows.
_LONE_MARKS = {"Ġ": " ", "▁": " ", "Ċ": "\n"}
_PREFIX, _SUFFIX = "##", "</w>"
# Halves of characters that are no bytes either.
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True)
class PieceText:
    """The joined text of some pieces.

    Attributes:
        text: includes the text between pieces.
        spans: each piece's first and last character, from 0, possibly shared; None for none.
    """

    text: str
    spans: tuple[tuple[int, int] | None, ...]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        spelling: Sequence[str],
        goes_on: Sequence[bool],
        between: Callable[[int, str, str], str],
    ) -> "PieceText":
        """Put pieces together."""
        parts = [_bytes(label, how) for label, how in zip(labels, spelling, strict=True)]
        starts = [at for at, on in enumerate(goes_on) if not on or at == 0]
        text, spans = "", list[tuple[int, int] | None]()
        before = ""
        for start, stop in zip(starts, [*starts[1:], len(labels)], strict=True):
            here = b"".join(parts[start:stop]).decode("utf-8", "surrogateescape")
            text += between(start, before, here) if start else ""
            spans += _spans(parts[start:stop], here, len(text))
            text, before = text + here, here
        return cls(text, tuple(spans))


def goes_on(labels: Sequence[str], spelling: Sequence[str]) -> list[bool]:
    """Mark pieces that continue a word, if they don't mark spaces."""
    found = list[bool]()
    for at, (label, how) in enumerate(zip(labels, spelling, strict=True)):
        if how.endswith("end-of-word"):
            found.append(at > 0 and spelling[at - 1] == how and not labels[at - 1].endswith(_SUFFIX))
        else:
            found.append(how in ("wordpiece", "unknown") and label.startswith(_PREFIX) and label != _PREFIX)
    return found


def keeps_spaces(labels: Sequence[str], spelling: Sequence[str]) -> bool | None:
    """Return whether pieces mark spaces; None if they don't even mark continuations."""
    kinds = set(spelling) - {"text"}
    if "unknown" in kinds:
        if any(label[:1] in _LONE_MARKS or label != label.strip() for label in labels):
            return True
        return False if any(label.startswith(_PREFIX) for label in labels) else None
    # Where characters are pieces, spaces are, too.
    return bool(kinds & _SPACED) or (not kinds and any(label.isspace() for label in labels))


def begins_with_blank(label: str, spelling: str) -> bool:
    """Return whether a piece begins with a blank and can't continue a word."""
    return _decoded(label, spelling)[:1].isspace()


def meet_as_letters(before: str, after: str) -> bool:
    """Return whether letters or digits meet between two texts."""
    while before and unicodedata.category(before[-1])[0] == "M":
        before = before[:-1]
    return bool(before and after) and kind_of(before[-1]) == kind_of(after) == "letter"


def _decoded(label: str, spelling: str) -> str:
    return _LONE_MARKS.get(label, "") or decode(label, spelling) if spelling == "unknown" else decode(label, spelling)


def _bytes(label: str, spelling: str) -> bytes:
    return _HALVES.sub("\ufffd", _decoded(label, spelling)).encode("utf-8", "surrogateescape")


def _spans(parts: Sequence[bytes], text: str, begin: int) -> list[tuple[int, int] | None]:
    """Return each part's first and last character from `begin`."""
    of_byte = list[int]()
    for at, character in enumerate(text):
        of_byte += [at] * len(character.encode("utf-8", "surrogateescape"))
    found, done = list[tuple[int, int] | None](), 0
    for part in parts:
        end = done + len(part)
        found.append((begin + of_byte[done], begin + of_byte[end - 1]) if part else None)
        done = end
    return found
