"""Group a tokenizer's pieces into words by pieces and text.

Tokenizers' own words differ: some take a whole text as one, others cut "don't" or a letter from its vowel sign.
"""

from collections.abc import Hashable, Iterator, Sequence

from attention_viz.trace.spelling import decode
from attention_viz.trace.words.piece_text import PieceText, goes_on, keeps_spaces, meet_as_letters
from attention_viz.trace.words.splitting import signs_of, word_numbers

__all__ = ["group_pieces", "sign_groups"]

# Letters that an apostrophe has on one side at most where it may be a quotation mark: "we'll", "l'eau".
_SHORT = 2
_APOSTROPHES = ("'", "’")
_CLITICS = ("s", "t", "d", "m", "ll", "re", "ve")


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
    """Group a word's pieces that share a letter, its marks or an emoji."""
    row = PieceText.of([labels[at] for at in word], [spelling[at] for at in word], [True] * len(word), _nothing)
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
        return PieceText.of(labels, spelling, [True] * len(labels), _nothing)
    if spaced is None:
        assert spaces is not None
        return PieceText.of(labels, spelling, [not one for one in spaces], _blank)
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


def _nothing(_at: int, _before: str, _after: str) -> str:
    return ""


def _blank(_at: int, _before: str, _after: str) -> str:
    return " "


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
