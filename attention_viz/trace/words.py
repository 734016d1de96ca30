"""The words of a row of pieces: their text, pieces and positions."""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from attention_viz.trace.spelling import decode
from attention_viz.trace.splitting import kind_of, signs_of, word_numbers, writes_no_spaces

# Separates two pieces if nobody knows whether a space was between them; Unicode has no such character.
OPEN = "\uffff"

# Spellings in which a piece says whether a space is before it. The others say only which piece goes on with a word.
_SPACED = frozenset(("byte-level", "sentencepiece", "bytes"))
# Blanks by themselves, for pieces whose spelling nobody knows.
_LONE_MARKS = {"Ġ": " ", "▁": " ", "Ċ": "\n"}
_PREFIX, _SUFFIX = "##", "</w>"
# Halves of characters that are no bytes either.
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
# Letters that an apostrophe has on one side at most where it may be a quotation mark: "we'll", "l'eau".
_SHORT = 2
_APOSTROPHES = ("'", "’")
_CLITICS = ("s", "t", "d", "m", "ll", "re", "ve")


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
        """Join pieces."""
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
    """Mark pieces that continue a word, by `##` or a piece before without `</w>`; spellings with spaces have none."""
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
    of_byte: Sequence[int] = range(len(text)) if text.isascii() else _characters_of_bytes(text)
    found, done = list[tuple[int, int] | None](), 0
    for part in parts:
        end = done + len(part)
        found.append((begin + of_byte[done], begin + of_byte[end - 1]) if part else None)
        done = end
    return found


def _characters_of_bytes(text: str) -> list[int]:
    of_byte = list[int]()
    for at, character in enumerate(text):
        of_byte += [at] * len(character.encode("utf-8", "surrogateescape"))
    return of_byte


def group_pieces(
    labels: Sequence[str],
    spelling: Sequence[str],
    runs: Sequence[Hashable],
    *,
    unknown: Sequence[bool] | None = None,
    spaces: Sequence[bool] | None = None,
) -> tuple[int | None, ...]:
    """Return each piece's word, from 0; None for blanks and non-text.

    Neighbours join if their meeting characters share a word. A space piece joins the next word. Pieces without spaces,
    such as WordPiece's, use `spaces`; without it, signs touch neighbouring letters if that makes a word, as in
    "e-mail".

    Args:
        runs: each piece's unit, such as a sentence, which no word crosses; None for non-text, such as [CLS].
        unknown: pieces for letters that the tokenizer lacks.
    """
    spaced = keeps_spaces(labels, spelling)
    if spaced is None and spaces is None:
        return (None,) * len(labels)
    # An unknown letter is a letter.
    odd = unknown or (False,) * len(labels)
    labels = ["x" if one else label for one, label in zip(odd, labels, strict=True)]
    spelling = ["text" if one else how for one, how in zip(odd, spelling, strict=True)]
    found: list[int | None] = [None] * len(labels)
    number = -1
    for places in _runs(runs):
        own = [labels[at] for at in places], [spelling[at] for at in places]
        known = None if spaces is None else [spaces[at] for at in places]
        row = _row(*own, spaced, known)
        words = word_numbers(row.text)
        before: int | None = None
        for at, span in zip(places, row.spans, strict=True):
            first, last = (None, None) if span is None else (words[span[0]], words[span[1]])
            if span is not None and any(one is not None for one in words[span[0] : span[1] + 1]):
                number += before is None or first != before
                found[at] = number
            before = last
        for at, following, own, next_own in zip(places, places[1:], row.spans, row.spans[1:], strict=False):
            if own is not None and next_own is not None and row.text[own[0] : own[1] + 1] == " ":
                found[at] = None if words[next_own[0]] is None else found[following]
    return tuple(found)


def sign_groups(labels: Sequence[str], spelling: Sequence[str], word: Sequence[int]) -> list[tuple[int, ...]]:
    """Group a word's subword tokens that share a letter, its marks or an emoji."""
    row = PieceText.of(
        [labels[at] for at in word], [spelling[at] for at in word], [True] * len(word), lambda _at, _before, _after: ""
    )
    places = [at for at, sign in enumerate(signs_of(row.text)) for _ in sign]
    groups, last = list[list[int]](), -1
    for at, span in zip(word, row.spans, strict=True):
        if span is None or not groups or places[span[0]] != last:
            groups.append([])
        groups[-1].append(at)
        last = -1 if span is None else places[span[1]]
    return [tuple(group) for group in groups]


def _row(
    labels: Sequence[str], spelling: Sequence[str], spaced: bool | None, spaces: Sequence[bool] | None
) -> PieceText:
    if spaced:
        return PieceText.of(labels, spelling, [True] * len(labels), lambda _at, _before, _after: "")
    if spaced is None:
        assert spaces is not None
        return PieceText.of(labels, spelling, [not one for one in spaces], lambda _at, _before, _after: " ")
    on = goes_on(labels, spelling)
    if spaces is not None:
        # A tokenizer that marks what goes on with a word would have marked it.
        cut = set(spelling) != {"text"}
        return PieceText.of(
            labels,
            spelling,
            on,
            lambda at, before, after: " " if spaces[at] or (cut and meet_as_letters(before, after)) else "",
        )

    def following(start: int) -> str:
        stop = next((at for at in range(start + 1, len(labels)) if not on[at]), len(labels))
        return "".join(decode(labels[at], spelling[at]) for at in range(start, stop))

    def guess(at: int, before: str, after: str) -> str:
        # "it's 'free'": what is after an apostrophe already isn't before another.
        closed = at > 1 and decode(labels[at - 2], spelling[at - 2]) in _APOSTROPHES and before in _CLITICS
        quotes = _may_quote("" if closed else before, after, following(at + 1))
        return " " if quotes or meet_as_letters(before, after) else ""

    return PieceText.of(labels, spelling, on, guess)


def _may_quote(before: str, sign: str, after: str) -> bool:
    """Guess if an apostrophe quotes: neither side is as short as in "we'll"."""
    return sign in _APOSTROPHES and all(len(one) > _SHORT for one in (before, after) if one.isalpha())


def _runs(runs: Sequence[Hashable]) -> Iterator[list[int]]:
    some = list[int]()
    for at, run in enumerate(runs):
        if some and run != runs[some[-1]]:
            yield some
            some = []
        if run is not None:
            some.append(at)
    if some:
        yield some


@dataclass(frozen=True, eq=False)
class WordFinder:
    """A finder of words' pieces by the text.

    Attributes:
        folded: the signs in lowercase and Unicode's composed form.
        places: the sign of each character of `folded`.
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
        """Make a finder for a row of pieces."""
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
        """Return the whole pieces of each occurrence of a word or of several spaced words."""
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
        """Return some signs' pieces; None if they end inside a piece or a run of letters."""
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
    """Drop nonspacing marks, such as accents, as BERT's tokenizers do."""
    kept = (sign for sign in unicodedata.normalize("NFD", text) if unicodedata.category(sign) != "Mn")
    return unicodedata.normalize("NFC", "".join(kept))


def _folded(sign: str) -> str:
    return sign if sign == OPEN else unicodedata.normalize("NFC", sign).casefold()
