"""What a lesson is made of: the reader's own sentence, and the models that can run it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attention_viz.edits.edit import Edit
from attention_viz.lesson.words import telling
from attention_viz.trace.tokens import split_words
from attention_viz.trace.trace import Trace
from attention_viz.views.style.theme import ThemeName

__all__ = ["LONGEST", "Run", "Scene"]

# Words that a lesson takes of a text: its pictures name each of them, and its exercises are worked by hand.
LONGEST = 24


@runtime_checkable
class Run(Protocol):
    """Runs a text through a model of the catalogue, as the app does for everybody or a test does for itself."""

    def __call__(self, model: str, text: str, *, edits: Sequence[Edit] = ()) -> Trace:
        """Run a text through a model, and give the trace."""
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """All that a lesson's numbers and pictures are computed from.

    Attributes:
        text: the reader's sentence, up to `LONGEST` words.
        run: runs a text through a pretrained model of the catalogue.
        choice: what the lesson's one control was set to, a key of its options; empty for the lesson's own default.
        notation: "rows" or "columns", as in `steps.NOTATIONS`.
        theme: "light" or "dark".
        seed: another seed, other vectors and other exercises.
        word: the place of the word that was pressed, among the words; None for the lesson's own.
    """

    text: str
    run: Run
    choice: str = ""
    notation: str = "rows"
    theme: ThemeName = "light"
    seed: int = 0
    word: int | None = None

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
