"""What a lesson is made of: the reader's own sentence, and the models that can run it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attention_viz.edits.edit import Edit
from attention_viz.lesson.words import telling
from attention_viz.models import CATALOGUE
from attention_viz.trace.trace import Trace
from attention_viz.trace.words.splitting import split_words
from attention_viz.views.style.theme import ThemeName

__all__ = ["LONGEST", "MOST_PRESSED", "REAL_MODEL", "RunText", "Scene"]

# The real model whose heads lessons show, and the toy in its place where its package isn't installed.
REAL_MODEL, _TOY = "all-MiniLM-L6-v2", "coreference"

# Words that a lesson takes of a text: its pictures name each of them, and its exercises are worked by hand.
LONGEST = 24
# Words, or tokens where a lesson has the text twice, that can be pressed: their places are below that.
MOST_PRESSED = 96


@runtime_checkable
class RunText(Protocol):
    """Runs a text through a model of the catalogue, as the app does for everybody or a test does for itself."""

    def __call__(self, model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None) -> Trace:
        """RunText a text through a model, and give the trace.

        Args:
            text: the text; of a model that reads pictures or sounds, the name of a sample.
            beside: another sentence of the same batch; where it is longer, the text is filled up with padding.
        """
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """All that a lesson's numbers and pictures are computed from.

    Attributes:
        text: the reader's sentence, up to `LONGEST` words.
        run: runs a text through a pretrained model of the catalogue.
        choice: what the lesson's one control was set to, a key of its options; empty for the lesson's own default.
        notation: "rows" or "columns", as in `steps.NOTATIONS`.
        seed: another seed, other vectors and other exercises.
        word: the place of the word that was pressed, among the words; None for the lesson's own.
    """

    text: str
    run: RunText
    choice: str = ""
    notation: str = "rows"
    theme: ThemeName = "light"
    seed: int = 0
    word: int | None = None

    @property
    def model(self) -> str:
        """The trained model whose heads lessons show: a real one, or a toy where that isn't installed."""
        return REAL_MODEL if CATALOGUE[REAL_MODEL].available else _TOY

    @property
    def read(self) -> str:
        """What that model reads: the reader's sentence, or as a toy knows few words, one of its own."""
        return self.text if self.model == REAL_MODEL else CATALOGUE[_TOY].examples[0]

    @property
    def called(self) -> str:
        """The model's name as a lesson tells it, with what has to be said of a toy."""
        return self.model if self.model == REAL_MODEL else f"the toy {_TOY}, on a sentence of its own"

    def trained(self, edits: Sequence[Edit] = (), *, beside: str | None = None) -> Trace:
        """What that model made of it."""
        return self.run(self.model, self.read, edits=edits, beside=beside)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the sentence, as our own module reads them."""
        return split_words(self.text)

    @property
    def asking(self) -> int:
        """The place of the word that a lesson is about: the one that was pressed, or the first that tells much."""
        words = self.words
        return self.word if self.word is not None and self.word < len(words) else int(telling(words))

    def chosen(self, options: Sequence[str], default: str) -> str:
        """What the control is set to, or the default where that is no option, as after an edited address."""
        return self.choice if self.choice in options else default
