"""Errands of a soak's visitors: a text, a shipped image or audio, or a file of their own."""

import random
from dataclasses import dataclass

from attention_viz.sources import CATALOGUE, of_text
from benchmarks.passages import PASSAGES
from benchmarks.uploading import KINDS, Brought, bring

__all__ = ["Errand", "errand", "first_errand", "word_of"]

# Of ten visits, how many bring a file, and how many of the others are of a picture or a sound that ships; of ten texts,
# how many are long.
_BRING, _LOOK_OR_LISTEN, _LONG = 2, 2, 2
_SEEN = ("picture", "sound")


@dataclass(frozen=True)
class Errand:
    """One visitor's errand.

    Attributes:
        link: the first link, as URL parameters.
        file: the file to upload then, if any.
    """

    kind: str
    link: dict[str, str]
    file: Brought | None = None


def word_of(visitor: int, visit: int) -> str:
    """Return a word that no other visitor types."""
    return f"zq{visitor}x{visit}q"


def first_errand(draw: random.Random, visitor: int) -> Errand:
    """Return a visitor's first errand; the first visitors each bring a file, so that the shortest run has all kinds."""
    kinds, word = _kinds(), word_of(visitor, 1)
    return _bringing(kinds[visitor], draw, word) if visitor < len(kinds) else errand(draw, word)


def errand(draw: random.Random, word: str) -> Errand:
    """Return a visitor's later errand, most often a text."""
    if draw.randrange(10) < _BRING:
        return _bringing(draw.choice(_kinds()), draw, word)
    seen = _readers()
    reads = draw.choice(sorted(seen)) if seen and draw.randrange(10) < _LOOK_OR_LISTEN else "text"
    if reads != "text":
        return Errand(f"a {reads}", {"model": seen[reads], reads: draw.choice(CATALOGUE[seen[reads]].samples)})
    text, model = _text(draw, word), draw.choice(sorted(of_text()))
    # An encoder that predicts words does so behind a mask, which stands first: of a long text it reads the beginning.
    masked = CATALOGUE[model].predicts and CATALOGUE[model].streams == ("encoder",)
    text = f"[MASK] {text}" if masked else text
    return Errand(f"a {'long' if len(text) > 200 else 'short'} text", {"model": model, "text": text})


def _kinds() -> list[str]:
    """Return the kinds of files to bring: a trace, and those that an installed model reads."""
    return [kind for kind in KINDS if kind == "trace" or kind in _readers()]


def _readers() -> dict[str, str]:
    """Return the models that read images and audio, if they are installed."""
    return {entry.reads: name for name, entry in CATALOGUE.items() if entry.available and entry.reads in _SEEN}


def _bringing(kind: str, draw: random.Random, word: str) -> Errand:
    link = {"model": _readers()[kind]} if kind in _readers() else dict[str, str]()
    return Errand(f"a {kind} of one's own", link, bring(kind, draw, word))


def _text(draw: random.Random, word: str) -> str:
    if draw.randrange(10) < _LONG:
        return f"{word} {draw.choice(PASSAGES)}"[:1500]
    return f"The {word} of the river was {draw.choice(('flooded', 'closed', 'old'))}"
