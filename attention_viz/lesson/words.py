"""The sentence's words and numbers, as written."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import SupportsFloat

from attention_viz.lesson.translation import translate
from attention_viz.trace.spelling import number_repeats, set_apart, weight_text
from attention_viz.views.style.wording import one_line, with_minus

# Other signs that people type for a minus.
_MINUS = str.maketrans(dict.fromkeys("−–—﹣－", "-"))
_PLAIN = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:([ .,'’])\d{3})(?:\1\d{3})*")
# Shorter words are mostly articles and prepositions.
_LONG_ENOUGH = 4
_LONGEST = 24
_PRONOUNS = frozenset(("it", "its", "he", "him", "his", "she", "her", "hers", "they", "them", "their"))


def offered(words: Sequence[str]) -> dict[str, str]:
    """Return every word by place, from 0; repeats are numbered, as "the₂"."""
    return {str(at): word for at, word in enumerate(number_repeats([in_words(word) for word in words]))}


def telling(words: Sequence[str]) -> str:
    """Return the first meaningful word's place, or else 0."""
    return next((str(at) for at, word in enumerate(words) if carries_meaning(word)), "0")


def carries_meaning(word: str) -> bool:
    """Return whether a word is long enough to have its own meaning."""
    return len(word) >= _LONG_ENOUGH and word.isalpha()


def is_pronoun(word: str) -> bool:
    """Return whether a word refers to something else, as "it" does."""
    return word.casefold() in _PRONOUNS


def counted(number: int, name: str) -> str:
    """Write a count in the course's language, such as "1 token" and "7 tokens"; `name` is English."""
    return translate(f"{{number}} {name}" if number == 1 else f"{{number}} {name}s", number=number)


def listed(parts: Sequence[str]) -> str:
    """Join words in the course's language: "one", "one and two", "one, two and three"."""
    *before, last = parts
    return translate("{before} and {last}", before=", ".join(before), last=last) if before else last


def labelled(options: Mapping[str, str]) -> dict[str, str]:
    """Translate a control's labels, by option; none may be a reader's word."""
    return {name: translate(label) for name, label in options.items()}


def in_words(word: str, longest: int = _LONGEST) -> str:
    """Shorten a word for a sentence, without invisible signs; right-to-left text is isolated."""
    return set_apart(one_line(word, longest))


def signed(number: float, digits: int = 3) -> str:
    """Format a number as pages do."""
    written = f"{number:.{digits}f}"
    return with_minus(written.removeprefix("-") if float(written) == 0 else written)


def signs(digits: int = 3, /, **numbers: SupportsFloat) -> dict[str, str]:
    """Write numbers by name, as `signed` does."""
    return {name: signed(float(number), digits) for name, number in numbers.items()}


def weight_texts(**numbers: SupportsFloat) -> dict[str, str]:
    """Write weights and other shares by name, as `weight_text` does."""
    return {name: weight_text(float(number)) for name, number in numbers.items()}


def texts(**values: object) -> dict[str, str]:
    """Write values by name."""
    return {name: str(value) for name, value in values.items()}


def quoted(words: Sequence[str], /, **places: int) -> dict[str, str]:
    """Write some of the words by name, as `in_words` does."""
    return {name: in_words(words[at]) for name, at in places.items()}


def readings(text: str) -> list[float]:
    """Return every numeric reading of a text; may be empty."""
    text = " ".join(text.translate(_MINUS).split()).lstrip("=≈ ")
    text = re.sub(r"^([+-]) ", r"\1", re.sub(r" ?([/%]) ?", r"\1", text))
    percent = text.endswith("%")
    found = [one / 100 if percent else one for one in _fractions(text.removesuffix("%"))]
    return [one for one in found if math.isfinite(one)]


def _fractions(text: str) -> list[float]:
    above, slash, below = text.partition("/")
    if not slash:
        return _numbers(above)
    return [one / other for one in _numbers(above) for other in _numbers(below) if other]


def _numbers(text: str) -> list[float]:
    found = [float(text.replace(",", "."))] if _PLAIN.fullmatch(text) else []
    # A sign in between may part thousands: that counts as a second way to read it.
    if _GROUPED.fullmatch(text):
        found.append(float(re.sub(r"[ .,'’]", "", text)))
    return found
