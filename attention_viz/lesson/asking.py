"""What a reader guesses before a lesson shows it: a row of shares, or which of several is the largest."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from attention_viz.analysis.slides import ShownPicture
from attention_viz.errors import ShapeError
from attention_viz.lesson.words import in_words, offered, signed
from attention_viz.models import CATALOGUE
from attention_viz.trace.trace import Trace

__all__ = ["Ask", "CatalogueHead", "row_asked", "short"]

# Shorter than what a text may call a word: it stands beside a bar.
_LABEL = 24


@dataclass(frozen=True)
class CatalogueHead:
    """A head of a model of the catalogue, as the app's other pages show it.

    Attributes:
        query: the position that looks; None where no pair is meant.
    """

    model: str
    text: str
    layer: int
    head: int
    query: int | None = None
    key: int | None = None

    @classmethod
    def of(cls, trace: Trace, layer: int, head: int, pair: tuple[int, int] | None = None) -> "CatalogueHead | None":
        """Where a trace's head is found; None where its model isn't the catalogue's, or read no text."""
        origin = trace.provenance
        if origin.text is None or origin.model not in CATALOGUE:
            return None
        return cls(origin.model, origin.text, layer, head, *(pair or (None, None)))


@dataclass(frozen=True)
class Ask:
    """A question with bars for an answer: guessed on the very bars that then show what is true.

    Attributes:
        question: what is asked, in a sentence, a heading of the page.
        finding: what is true, in a sentence, the heading once it is seen.
        source: whose numbers these are: a model with layer and head, or our own small head, by name.
        values: the true number of each, in the same order.
        shares: whether the numbers are shares of 1, so that a guess is a share for each; else a guess is one of them.
        shown: each number as it is written; three decimals where nothing else is given.
        pressed: by option, what the lesson is asked for when it is pressed once the answer is seen; empty where
            nothing is.
        word: whether that is a word, by its place, and not a setting of the lesson's control.
        query: the option that asks; None where none does.
        complete: whether the bars are all that the lesson's picture shows.
        whole: the number that fills a bar's track; None for 1 where they are shares, else the largest of them.
        seen: a picture that is read, for a class; None where the lesson is of none.
        place: the head that is asked about, to be looked at further; None for our own small head.
    """

    question: str
    finding: str
    source: str
    options: tuple[str, ...]
    values: tuple[float, ...]
    shares: bool = False
    shown: tuple[str, ...] = ()
    pressed: tuple[str, ...] = ()
    word: bool = False
    query: int | None = None
    complete: bool = False
    whole: float | None = None
    seen: ShownPicture | None = None
    place: CatalogueHead | None = None

    def __post_init__(self) -> None:
        """Every option has its number, and what is written of it."""
        count = len(self.options)
        others = (self.values, self.shown or self.values, self.pressed or self.values)
        if not count or any(len(one) != count for one in others):
            raise ShapeError(f"a question has a number for each of its options; there are {count} options")

    @property
    def right(self) -> frozenset[int]:
        """The options with the largest number."""
        most = max(self.values)
        return frozenset(at for at, value in enumerate(self.values) if value == most)

    @property
    def written(self) -> tuple[str, ...]:
        """Each number as it stands beside its bar."""
        return self.shown or tuple(signed(value) for value in self.values)

    @property
    def lengths(self) -> tuple[float, ...]:
        """How long each bar is, from 0 to 1: of shares the share, else as a part of `whole`, or of the largest."""
        most = 1.0 if self.shares else self.whole or max(map(abs, self.values)) or 1.0
        return tuple(min(1.0, abs(value) / most) for value in self.values)

    def said(self, guess: int) -> str:
        """What is told to a guess, from the numbers alone.

        Args:
            guess: an option's place; of shares, that of the largest.
        """
        name, number = short(self.options[guess]), self.written[guess]
        if guess in self.right:
            return f"Right: {name}, {number}.".replace(", .", ".")
        best = min(self.right)
        answer = f"{short(self.options[best])}: {self.written[best]}".removesuffix(": ")
        if not self.values[guess]:
            return f"Not {name}. {answer}."
        place = 1 + sum(value > self.values[guess] for value in self.values)
        return f"Not {name}: {number}, place {place} of {len(self.values)}. {answer}."


def short(label: str) -> str:
    """An option as a sentence calls it."""
    # One that is isolated already is so once more after it was cut.
    return f"“{in_words(label.translate({0x2068: None, 0x2069: None}), _LABEL)}”"


def row_asked(
    row: Tensor,
    labels: Sequence[str],
    query: int,
    source: str,
    pressed: Sequence[str] = (),
    *,
    word: bool = False,
    complete: bool = False,
    place: CatalogueHead | None = None,
) -> Ask:
    """The row of weights of a word as a question."""
    values = tuple(row.detach().double().tolist())
    best = max(range(len(values)), key=values.__getitem__)
    # As the bars call them: of equal words each with its number.
    options = tuple(offered(labels).values())
    taken = "itself" if best == query else short(options[best])
    return Ask(
        f"Which word does {short(options[query])} take most from?",
        f"{short(options[query])} takes {signed(values[best])} from {taken}",
        source,
        options,
        values,
        shares=True,
        pressed=tuple(pressed),
        word=word,
        query=query,
        complete=complete,
        place=place,
    )
