"""Words that differ between two texts as they were typed."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from attention_viz.trace.spelling import number_repeats
from attention_viz.trace.splitting import writes_no_spaces

_PIECES = re.compile(r"\s+|\w+(?:['’]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class TextPiece:
    """A word, a sign or a space.

    Attributes:
        change: "swapped" for a word with another in its place, "alone" for a word of this text only, else "".
        number: its number among equal words, such as "₂"; empty if it comes once.
    """

    text: str
    change: str = ""
    number: str = ""


def text_changes(one: str, other: str) -> tuple[tuple[TextPiece, ...], tuple[TextPiece, ...]]:
    """Return both texts' pieces, with the changed ones marked."""
    first, second = _split(one), _split(other)
    changes = [""] * len(first), [""] * len(second)
    words = [[at for at, piece in enumerate(pieces) if not piece.isspace()] for pieces in (first, second)]
    labels = [[pieces[at] for at in places] for pieces, places in zip((first, second), words, strict=True)]
    matcher = SequenceMatcher(None, *labels, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind != "equal":
            change = "swapped" if kind == "replace" else "alone"
            for at in words[0][start:end]:
                changes[0][at] = change
            for at in words[1][other_start:other_end]:
                changes[1][at] = change
    return _marked(first, changes[0]), _marked(second, changes[1])


def _split(text: str) -> list[str]:
    found = list[str]()
    for piece in _PIECES.findall(text):
        found += piece if writes_no_spaces(piece) else [piece]
    return found


def _marked(pieces: list[str], changes: list[str]) -> tuple[TextPiece, ...]:
    words = [piece for piece in pieces if _is_word(piece)]
    numbers = (one[len(word) :] for word, one in zip(words, number_repeats(words), strict=True))
    found = zip(pieces, changes, strict=True)
    return tuple(TextPiece(piece, change, next(numbers) if _is_word(piece) else "") for piece, change in found)


def _is_word(piece: str) -> bool:
    return piece[0].isalnum() and not writes_no_spaces(piece)
