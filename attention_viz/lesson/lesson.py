"""A lesson: a text, a live figure, a control, an exercise, and a question before the answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from torch import Tensor

from attention_viz.analysis.slides import ShownPicture
from attention_viz.errors import ShapeError
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.figures.wording import translated
from attention_viz.lesson.links import asking_position, positioned_words, trained_words
from attention_viz.lesson.openings.opening import Opening
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, offered, signed
from attention_viz.sources import CATALOGUE
from attention_viz.trace.kind import InputKind
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace

__all__ = [
    "Ask",
    "CatalogueHead",
    "Control",
    "Lesson",
    "Shown",
    "Spot",
    "asking_words",
    "bar_spots",
    "line_spots",
    "row_asked",
    "row_spots",
    "short",
    "written_spots",
]

# The kinds of samples, as paper names them.
_KINDS = {InputKind.PICTURE: "Image", InputKind.BESIDE: "Image", InputKind.SOUND: "Audio"}
# Shorter than in a text, since it labels a bar.
_LABEL = 24
# Along a bar's row, in parts of the width.
_ALONG = (0.03, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)


@dataclass(frozen=True)
class CatalogueHead:
    """A catalogue model's head; `query` None means no pair."""

    model: str
    text: str
    layer: int
    head: int
    query: int | None = None
    key: int | None = None
    stream: str | None = None

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
        pressed: by option, the setting it presses after the answer.
        word: whether `pressed` is a word's place, not the control's.
        query: None if no option is the query.
        complete: whether the bars are the whole figure.
        whole: a full bar; None for 1 (shares) or the largest.
        seen: for a class.
        opening: the gesture that answers in place of the bars.
        place: None for our small head.
        drawn: whether the numbers come from a seed and mean nothing.
        premise: the numbers that the question builds on, in a sentence beside it.
        reasons: by option, a sentence on why it is wrong, said in place of its rank; "" for none.
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
    opening: Opening | None = None
    place: CatalogueHead | None = None
    drawn: bool = False
    premise: str = ""
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every option has a number and text."""
        count = len(self.options)
        others = (self.values, self.shown or self.values, self.pressed or self.values, self.reasons or self.values)
        if not count or any(len(one) != count for one in others):
            got = ", ".join(str(len(one)) for one in others)
            raise ShapeError(f"a question needs one number and text per option; got {got} for {count} options")

    @property
    def right(self) -> frozenset[int]:
        """The options with the largest number."""
        most = max(self.values)
        return frozenset(at for at, value in enumerate(self.values) if value == most)

    @property
    def written(self) -> tuple[str, ...]:
        """The number shown at each bar."""
        return self.shown or tuple((weight_text if self.shares else signed)(value) for value in self.values)

    @property
    def lengths(self) -> tuple[float, ...]:
        """Each bar's length, from 0 to 1."""
        most = 1.0 if self.shares else self.whole or max(map(abs, self.values)) or 1.0
        return tuple(min(1.0, abs(value) / most) for value in self.values)

    def said(self, guess: int) -> str:
        """Return the feedback to a guess, an option's place."""
        if guess in self.right:
            return translate("Right. {answer}", answer=self._answer(guess))
        name, answer = short(self.options[guess]), self._answer(min(self.right))
        if self.reasons and self.reasons[guess]:
            return translate("Not quite. {reason} {answer}", reason=self.reasons[guess], answer=answer)
        if not self.values[guess]:
            return translate("Not quite: you chose {name}. {answer}", name=name, answer=answer)
        place, count = 1 + sum(value > self.values[guess] for value in self.values), len(self.values)
        return translate(
            "Not quite: {name}, {number}, ranks {place} of {count}. {answer}",
            **{"name": name, "number": self.written[guess], "place": place, "count": count, "answer": answer},
        )

    def _answer(self, at: int) -> str:
        name, number = short(self.options[at]), self.written[at]
        if number:
            return translate("The answer is {name}: {number}.", name=name, number=number)
        return translate("The answer is {name}.", name=name)


def short(label: str) -> str:
    """Shorten an option for a sentence."""
    # One that is isolated already is so once more after it was cut.
    return translate("“{word}”", word=in_words(label.translate({0x2068: None, 0x2069: None}), _LABEL))


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
    drawn: bool = False,
) -> Ask:
    """Return a word's row of weights as a question."""
    values = tuple(row.detach().double().tolist())
    best = max(range(len(values)), key=values.__getitem__)
    # As the bars call them: of equal words each with its number.
    options = tuple(offered(labels).values())
    name, seen = short(options[query]), translate("itself") if best == query else short(options[best])
    return Ask(
        translate("Which word does {word} look at most?", word=name),
        translate("{word} looks at {other}: {weight}", word=name, other=seen, weight=weight_text(values[best])),
        source,
        options,
        values,
        shares=True,
        pressed=tuple(pressed),
        word=word,
        query=query,
        complete=complete,
        place=place,
        drawn=drawn,
    )


@dataclass(frozen=True)
class Spot:
    """A clickable place: y goes down, the axis is Plotly's pair, the name hover text."""

    x: float
    y: float
    option: str
    axis: str = ""
    name: str = ""


def line_spots(
    places: Sequence[float], names: Sequence[str], options: Collection[str], heights: Sequence[float]
) -> tuple[Spot, ...]:
    """Return spots of words on lines, for the selectable ones."""
    return tuple(
        Spot(x, height, str(at), name=name)
        for at, (x, name) in enumerate(zip(places, names, strict=True))
        if str(at) in options
        for height in heights
    )


def bar_spots(options: Sequence[str]) -> tuple[Spot, ...]:
    """Return spots of horizontal bars, one for each option; "" chooses nothing."""
    return tuple(Spot(x, y, option) for y, option in enumerate(options) if option for x in _ALONG)


def row_spots(figure: go.Figure, options: Sequence[str], *, upright: bool = False) -> tuple[Spot, ...]:
    """Return spots of all matrices with a row for each option; "" chooses nothing."""
    found = list[Spot]()
    matrices: list[Any] = [one for one in figure.data if isinstance(one, go.Heatmap)]
    for axis, shape in {(one.xaxis or "x")[1:]: one.z.shape for one in matrices}.items():
        words, others = shape[::-1] if upright else shape
        if words != len(options):
            continue
        places = [(word, other) for word in range(words) for other in range(others) if options[word]]
        found += [Spot(*((a, b) if upright else (b, a)), options[a], axis) for a, b in places]
    return tuple(found)


def written_spots(figure: go.Figure, name: str) -> tuple[Spot, ...]:
    """Return spots of words with axes of their own, by place."""
    traces: list[Any] = list(figure.data)
    found = [one for one in traces if one.name == name]
    return tuple(
        Spot(x, y, str(at), one.xaxis[1:]) for one in found for at, (x, y) in enumerate(zip(one.x, one.y, strict=True))
    )


def asking_words(scene: Scene) -> tuple[str, ...]:
    """Map our module's words to a trained model's; "" if none matches."""
    words, _ = trained_words(scene)
    known = {label.casefold(): place for place, label in reversed([*words.items()])}
    if len(words) == len(scene.words):
        return tuple(words)
    return tuple(known.get(word.casefold(), "") for word in scene.words)


@dataclass(frozen=True)
class Control:
    """A lesson's one control: labels by value, in order; numbers for a slider, or a sentence's words."""

    label: str
    options: Callable[[Scene], Mapping[str, str]]
    default: Callable[[Scene], str]
    ordered: bool = False
    words: bool = False

    def value(self, scene: Scene) -> str:
        """Return the control's current option."""
        return scene.chosen(tuple(self.options(scene)), self.default(scene))


@dataclass(frozen=True)
class Shown:
    """A lesson's figure of one scene, its facts for {{name}}, and its alternative text; `drawn` as in `Ask`."""

    facts: Mapping[str, str]
    figure: go.Figure
    says: str
    spots: tuple[Spot, ...] = ()
    drawn: bool = False

    def __post_init__(self) -> None:
        """Translate the figure's words."""
        translated(self.figure)


@dataclass(frozen=True)
class Lesson:
    """One idea on one screen; its text is in `text`, by name.

    Attributes:
        idea: one or two sentences before the question, in English; they introduce its words.
        deeper: URLs of further pages, such as "steps".
        words: selectable by `Scene.word`, and the query; None if none or the bars are words.
        trained_word: whether `Scene.word` is a word of the trained model's text, as with `trained_words`.
        sample: name in `SAMPLES` of an image or audio that replaces the sentence.
    """

    title: str
    minutes: int
    ask: Callable[[Scene], Ask]
    show: Callable[[Scene], Shown]
    control: Control
    exercise: str
    deeper: tuple[str, ...] = ()
    words: Callable[[Scene], tuple[Mapping[str, str], str]] | None = None
    sample: Callable[[Scene], str] | None = None
    trained_word: bool = False
    idea: str = ""

    @property
    def asks_word(self) -> bool:
        """Return whether the control chooses a word of the trained model's text."""
        return self.control.options is positioned_words

    def position(self, scene: Scene) -> int | None:
        """Return the token position that the reader pressed in the trained model's text; None for none."""
        if self.asks_word and scene.choice in self.control.options(scene):
            return int(scene.choice)
        pressed = self.trained_word or self.words is trained_words
        return asking_position(scene) if pressed and scene.word is not None else None

    def made_from(self, scene: Scene) -> str:
        """Name the lesson's sentence, image or audio, for paper."""
        if self.sample is None:
            return translate("Sentence: “{text}”", text=scene.text)
        one = SAMPLES[self.sample(scene)]
        return f"{translate(_KINDS[one.kind])}: {translate(one.shows)} ({one.file})"
