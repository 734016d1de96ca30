"""A lesson's input: the reader's sentence and the models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attention_viz.edits.edit import Edit
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import telling
from attention_viz.sources import CATALOGUE
from attention_viz.trace.spelling import number_repeats
from attention_viz.trace.splitting import split_words
from attention_viz.trace.trace import Trace
from attention_viz.views.style.theme import ThemeName

__all__ = ["FEWEST", "LONGEST", "MOST_PRESSED", "REAL_MODEL", "RunText", "Scene"]

# The real model whose heads lessons show, and the toy that replaces it if its package isn't installed.
REAL_MODEL, _TOY = "all-MiniLM-L6-v2", "coreference"

# The fewest words of a text in a lesson, since a single one attends only to itself; and the most: its figures name each
# of them, and its exercises are worked by hand.
FEWEST, LONGEST = 2, 24
# The most words (or tokens, if a lesson has the text twice) that can be pressed.
MOST_PRESSED = 96


@runtime_checkable
class RunText(Protocol):
    """A function that runs a text through a catalogue model."""

    def __call__(
        self, model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None, picture: str = ""
    ) -> Trace:
        """Run a text, or a sample by name; a longer batch-mate `beside` adds padding; `picture` is a sample's name."""
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """A lesson's input; an empty choice or word means the default.

    Attributes:
        head: the layer and head that the other pages show; None for the lesson's own.
        query: the token position that they show; None for the lesson's own.
    """

    text: str
    run: RunText
    choice: str = ""
    notation: str = "rows"
    theme: ThemeName = "light"
    seed: int = 0
    word: int | None = None
    head: tuple[int, int] | None = None
    query: int | None = None

    @property
    def model(self) -> str:
        """The real model, or a toy if it isn't installed."""
        return REAL_MODEL if CATALOGUE[REAL_MODEL].available else _TOY

    @property
    def read(self) -> str:
        """The model's text: the reader's, or a toy's own."""
        return self.text if self.model == REAL_MODEL else CATALOGUE[_TOY].examples[0]

    @property
    def called(self) -> str:
        """The model's name, with a note if it is a toy."""
        return (
            self.model if self.model == REAL_MODEL else translate("the toy {toy}, on a sentence of its own", toy=_TOY)
        )

    def trained(self, edits: Sequence[Edit] = (), *, beside: str | None = None) -> Trace:
        """Run the model."""
        return self.run(self.model, self.read, edits=edits, beside=beside)

    @property
    def words(self) -> tuple[str, ...]:
        """The sentence's words as our module splits them."""
        return split_words(self.text)

    @property
    def names(self) -> tuple[str, ...]:
        """Its words, repeated ones numbered."""
        return tuple(number_repeats(self.words))

    @property
    def asking(self) -> int:
        """The place of the pressed or first meaningful word."""
        words = self.words
        return self.word if self.word is not None and self.word < len(words) else int(telling(words))

    def chosen(self, options: Sequence[str], default: str) -> str:
        """Return the control's option; the default if invalid, as in an edited URL."""
        return self.choice if self.choice in options else default
