"""Find a word in pieces, however it is cut."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from attention_viz.trace.words.piece_text import OPEN, PieceText, goes_on, keeps_spaces, meet_as_letters
from attention_viz.trace.words.splitting import kind_of, signs_of, writes_no_spaces

__all__ = ["WordFinder", "without_marks_above"]


@dataclass(frozen=True, eq=False)
class WordFinder:
    """A finder of words' pieces by the text.

    Attributes:
        folded: the text's signs, lowercase, in Unicode's composed form.
        places: each character's sign.
        pieces: each sign's first and last piece; None between pieces.
        spaced: pieces that follow one with their word's space.
    """

    folded: str
    places: tuple[int, ...]
    signs: tuple[str, ...]
    pieces: tuple[tuple[int, int] | None, ...]
    spaced: frozenset[int]

    @classmethod
    def of(cls, labels: Sequence[str], spelling: Sequence[str], words: Sequence[int | None]) -> "WordFinder":
        """Read a row of pieces."""
        spaced = bool(keeps_spaces(labels, spelling))
        on = [True] * len(labels) if spaced else goes_on(labels, spelling)

        def between(at: int, before: str, after: str) -> str:
            if words[at] is not None and words[at] == words[at - 1]:
                return ""
            return " " if meet_as_letters(before, after) else OPEN

        row = PieceText.of(labels, spelling, on, between)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for piece, span in enumerate(row.spans):
            for character in range(span[0], span[1] + 1) if span is not None else ():
                first.setdefault(character, piece)
                last[character] = piece
        signs, pieces, places, folded, at = list[str](), list[tuple[int, int] | None](), list[int](), "", 0
        for sign in signs_of(row.text):
            ends = at, at + len(sign) - 1
            small = _folded(sign)
            places += [len(signs)] * len(small)
            folded += small
            signs.append(sign)
            pieces.append((first[ends[0]], last[ends[1]]) if ends[0] in first and ends[1] in last else None)
            at += len(sign)
        alone = (at for at, span in enumerate(row.spans) if span and row.text[span[0] : span[1] + 1] == " ")
        spaces = frozenset(at + 1 for at in alone if words[at] is not None and words[at] in words[at + 1 : at + 2])
        return cls(folded, tuple(places), tuple(signs), tuple(pieces), spaces)

    def find(self, word: str) -> list[tuple[int, ...]]:
        """Return each occurrence's pieces, for one or several spaced words.

        Only whole pieces match, without a letter continuing on either side.
        """
        wanted = "".join(map(_folded, signs_of(word.strip())))
        if not wanted:
            return []
        parts = [f"{OPEN}?".join(map(re.escape, part)) for part in wanted.split()]
        found = list[tuple[int, ...]]()
        for match in re.finditer(rf"[\s{OPEN}]+".join(parts), self.folded):
            begin, end = self.places[match.start()], self.places[match.end() - 1]
            whole = self._begins(match.start()) and self._begins(match.end())
            if whole and (pieces := self._pieces(begin, end)) is not None:
                found.append(pieces)
        return found

    def _begins(self, character: int) -> bool:
        places = self.places
        return character in (0, len(places)) or places[character] != places[character - 1]

    def _pieces(self, begin: int, end: int) -> tuple[int, ...] | None:
        """Return some signs' pieces; None for partial pieces or part of a letter run."""
        first, last = self.pieces[begin], self.pieces[end]
        if first is None or last is None:
            return None
        for inner, outer, piece in ((begin, begin - 1, first[0]), (end, end + 1, last[1])):
            if not 0 <= outer < len(self.signs) or kind_of(self.signs[outer]) == "blank":
                continue
            beside = self.pieces[outer]
            if beside is not None and beside[0] <= piece <= beside[1]:
                return None
            letters = kind_of(self.signs[inner]) == kind_of(self.signs[outer]) == "letter"
            if letters and not writes_no_spaces(self.signs[inner]):
                return None
        return tuple(range(first[0] - (first[0] in self.spaced), last[1] + 1))


def without_marks_above(text: str) -> str:
    """Drop marks that are no letters, as BERT's tokenizers do."""
    kept = (sign for sign in unicodedata.normalize("NFD", text) if unicodedata.category(sign) != "Mn")
    return unicodedata.normalize("NFC", "".join(kept))


def _folded(sign: str) -> str:
    return sign if sign == OPEN else unicodedata.normalize("NFC", sign).casefold()
