"""Questions that a reader answers before a lesson shows the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from attention_viz.analysis.slides import ShownPicture
from attention_viz.errors import ShapeError
from attention_viz.lesson.words import in_words, offered, signed
from attention_viz.sources import CATALOGUE
from attention_viz.trace.trace import Trace

__all__ = ["Ask", "CatalogueHead", "row_asked", "short"]

# Shorter than what a text may call a word: it stands beside a bar.
_LABEL = 24


@dataclass(frozen=True)
class CatalogueHead:
    """A catalogue model's head; `query` None means no pair."""

    model: str
    text: str
    layer: int
    head: int
    query: int | None = None
    key: int | None = None

    @classmethod
    def of(cls, trace: Trace, layer: int, head: int, pair: tuple[int, int] | None = None) -> "CatalogueHead | None":
        """Return a trace's head; None if outside the catalogue or without text."""
        origin = trace.provenance
        if origin.text is None or origin.model not in CATALOGUE:
            return None
        return cls(origin.model, origin.text, layer, head, *(pair or (None, None)))


@dataclass(frozen=True)
class Ask:
    """A question guessed on bars that then show the answer.

    Attributes:
        question: heading before the answer.
        finding: heading after.
        source: a model with layer and head, or our small head.
        shares: whether to guess every share of 1; else one option.
        pressed: by option, the setting it presses after the answer; may be empty.
        word: whether `pressed` is a word's place, not the control's.
        query: None if no option is the query.
        complete: whether the bars are the whole picture.
        whole: a full bar; None for 1 (shares) or the largest.
        seen: picture for a class, or None.
        place: None for our small head.
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
        """Check that every option has its number and text."""
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
        """Return each bar's length, from 0 to 1."""
        most = 1.0 if self.shares else self.whole or max(map(abs, self.values)) or 1.0
        return tuple(min(1.0, abs(value) / most) for value in self.values)

    def said(self, guess: int) -> str:
        """Return the feedback to a guess, an option's place."""
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
    """Return a word's row of weights as a question."""
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
