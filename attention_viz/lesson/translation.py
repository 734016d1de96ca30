"""The course's languages: every sentence is written in English and looked up in a table."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from attention_viz.errors import AttentionVizError

__all__ = ["LANGUAGES", "TEXTS", "current_language", "grouped", "in_language", "regrouped", "sentences", "translate"]

# By code, as in a URL; the first one is what the sentences are written in.
LANGUAGES = {"en": "English", "de": "Deutsch"}
TEXTS = Path(__file__).parent / "text"

# Other languages part thousands with a narrow space: a comma means decimals there.
_THIN = "\N{NARROW NO-BREAK SPACE}"

_language: ContextVar[str] = ContextVar("course language", default="en")


def current_language() -> str:
    """Return the code of the language that course texts are written in now."""
    return _language.get()


@contextmanager
def in_language(code: str) -> Generator[None]:
    """Write the course's texts in a language of `LANGUAGES`; raise `AttentionVizError` for another code."""
    if code not in LANGUAGES:
        raise AttentionVizError(f"unknown language {code!r}; choose {' or '.join(LANGUAGES)}")
    before = _language.set(code)
    try:
        yield
    finally:
        _language.reset(before)


def translate(english: str, /, **values: object) -> str:
    """Return a sentence in the current language with its {values} filled in; in English if its table lacks it."""
    return sentences(current_language()).get(english, english).format_map(values)


def grouped(number: float, form: str = ",") -> str:
    """Write a number with its thousands parted as the current language parts them: “1,000”, or with a narrow space."""
    return regrouped(format(number, form))


def regrouped(written: str) -> str:
    """Part the thousands of an English number as the current language does."""
    return written if current_language() == next(iter(LANGUAGES)) else written.replace(",", _THIN)


@cache
def sentences(code: str) -> Mapping[str, str]:
    """Return a language's sentences by their English, from all of its files."""
    return {
        english: words
        for path in sorted((TEXTS / code).glob("**/*.json"))
        for english, words in json.loads(path.read_text(encoding="utf-8")).items()
    }
