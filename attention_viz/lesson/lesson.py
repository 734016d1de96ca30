"""What a lesson consists of: a text, a live picture, one thing to change, one exercise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import plotly.graph_objects as go

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import Spot
from attention_viz.models.inputs.media.shipped import SAMPLES

__all__ = ["Control", "Lesson", "Shown"]


@dataclass(frozen=True)
class Control:
    """The one thing to change.

    Attributes:
        label: what it is called on the page.
        options: by value, what a person reads; in order, made for the reader's own sentence.
        default: the value that a lesson opens with.
        ordered: whether the options are numbers in order, to be slid along.
        words: whether they are words of a sentence, to be pressed as they stand there.
    """

    label: str
    options: Callable[[Scene], Mapping[str, str]]
    default: Callable[[Scene], str]
    ordered: bool = False
    words: bool = False

    def value(self, scene: Scene) -> str:
        """The option that the control is set to."""
        return scene.chosen(tuple(self.options(scene)), self.default(scene))


@dataclass(frozen=True)
class Shown:
    """What a lesson shows of one scene.

    Attributes:
        facts: by name, what stands in the text in the place of {{name}}: numbers and words, all computed.
        says: what the picture shows, in a sentence for those who can't see it.
        spots: where words stand in the picture that can be pressed.
    """

    facts: Mapping[str, str]
    figure: go.Figure
    says: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """One idea on one screen.

    Its text is the file of its name in the folder `text`.

    Attributes:
        minutes: how long it takes a reader, about.
        ask: computes what is guessed before anything is told.
        show: computes what there is to tell and to see.
        deeper: pages of the app where the same can be looked at further, by their addresses, such as "steps".
        covers: what of the subject it teaches, in a few words each; the docs list them.
        words: the words of the picture that can be pressed, by `Scene.word`, and which of them asks now; None where the
            bars are the words, or the picture has none.
        sample: of a lesson that is made from no sentence, the picture or the sound in its place, by its name in
            `SAMPLES`; its exercise has a sample of that kind, too.
    """

    title: str
    minutes: int
    ask: Callable[[Scene], Ask]
    show: Callable[[Scene], Shown]
    control: Control
    exercise: str
    deeper: tuple[str, ...] = ()
    covers: tuple[str, ...] = field(default=())
    words: Callable[[Scene], tuple[Mapping[str, str], str]] | None = None
    sample: Callable[[Scene], str] | None = None

    def made_from(self, scene: Scene) -> str:
        """What it is made from, for paper: the sentence, or a picture or a sound that ships."""
        if self.sample is None:
            return f"Sentence: “{scene.text}”"
        one = SAMPLES[self.sample(scene)]
        return f"{one.kind.capitalize()}: {one.shows} ({one.file})"
