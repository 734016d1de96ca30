"""Split text into words by one rule for all tokenizers."""

import functools
import unicodedata
from collections.abc import Iterator, Sequence

# What joins two letters of one word, as in "don't" and in Hebrew abbreviations; what joins letters and digits, as in
# "e-mail" and "covid-19"; and what joins digits, as in "3.14" and "1,000".
_APOSTROPHES = frozenset("'’׳״")
_HYPHENS = frozenset("-‐‑")
_POINTS = frozenset(".,٫٬")
_JOINING = _APOSTROPHES | _HYPHENS | _POINTS

# Scripts that write no spaces between words, as Unicode names their letters. Each sign of Han and kana is a word;
# in the others, a word ends at a space or a sign.
_ALONE = ("CJK ", "HIRAGANA", "KATAKANA")
_SPACELESS = (*_ALONE, "THAI", "LAO", "KHMER", "MYANMAR")
_remembered = functools.lru_cache(maxsize=1 << 14)


def split_words(text: str) -> tuple[str, ...]:
    """Split text by `word_numbers` and drop blanks."""
    signs = tuple(signs_of(text))
    words: dict[int, str] = {}
    for sign, number in zip(signs, _numbers(signs), strict=True):
        if number is not None:
            words[number] = words.get(number, "") + sign
    return tuple(words.values())


def first_words(text: str, most: int) -> str:
    """Return the beginning of a text, with `most` words or fewer, cut at a blank if possible."""
    used = list[str]()
    for part in text.split():
        if len(split_words(" ".join([*used, part]))) > most:
            break
        used.append(part)
    # Some scripts put no space between words.
    return " ".join(used) or " ".join(split_words(text)[:most])


def word_numbers(text: str) -> list[int | None]:
    """Return each character's word number, from 0; None for blanks, controls and invisible characters.

    A word is a run of letters and digits with their marks and inner signs: an apostrophe before a letter ("don't"), a
    hyphen unless between two digits ("e-mail"), a point or comma between two digits ("3.14"). Any other sign, emoji,
    flag, Han or kana sign is a word.
    """
    signs = tuple(signs_of(text))
    found = list[int | None]()
    for sign, number in zip(signs, _numbers(signs), strict=True):
        found += [number] * len(sign)
    return found


def _numbers(signs: Sequence[str]) -> list[int | None]:
    found = list[int | None]()
    kinds, number, inside = [kind_of(sign) for sign in signs], -1, False
    for at, (sign, kind) in enumerate(zip(signs, kinds, strict=True)):
        joins = inside and sign in _JOINING and at + 1 < len(signs) and kinds[at + 1] == "letter"
        joins = joins and _joins(signs[at - 1], sign, signs[at + 1])
        if not (inside and (kind == "letter" or joins)):
            number += kind != "blank"
        found.append(None if kind == "blank" else number)
        inside = kind == "letter" or joins
    return found


def _joins(before: str, sign: str, after: str) -> bool:
    digits = [one[0].isdecimal() for one in (before, after)]
    if sign in _APOSTROPHES:
        return not digits[1]
    return all(digits) if sign in _POINTS else not all(digits)


def signs_of(text: str) -> Iterator[str]:
    """Yield visible signs, after the relevant rules of Unicode Standard Annex 29."""
    if text.isascii():  # without anything that continues a sign
        yield from text
        return
    sign = ""
    for character in text:
        if sign and _continues(sign, character):
            sign += character
        else:
            if sign:
                yield sign
            sign = character
    if sign:
        yield sign


def _continues(sign: str, character: str) -> bool:
    """Return whether a character extends a sign: accents, joiners, skin tones, tags, half a flag."""
    if character < "\x7f" and sign[-1] != "\u200d":
        return False
    if kind_of(sign) == "blank":
        return False
    # A soft hyphen isn't seen inside a word.
    if unicodedata.category(character)[0] == "M" or character in "\u200c\u200d\u00ad":
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True
    if _is_flag_half(character):
        return len(sign) == 1 and _is_flag_half(sign)
    return sign[-1] == "\u200d" and kind_of(character) != "blank"


def kind_of(sign: str) -> str:
    """Classify as "letter", which joins neighbours, "sign", which is alone, or "blank"."""
    return _kind(sign[0])


@_remembered
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if character.isspace() or category in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp"):
        return "blank"
    if category[0] not in "LN" or unicodedata.name(character, "").startswith(_ALONE):
        return "sign"
    return "letter"


@_remembered
def writes_no_spaces(text: str) -> bool:
    """Return whether a text has letters of a script without spaces."""
    return not text.isascii() and any(unicodedata.name(sign, "").startswith(_SPACELESS) for sign in text)


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
