"""A lesson: a text, a live picture, one control, one exercise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import plotly.graph_objects as go

from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.asking import Ask
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import Spot

__all__ = ["Control", "Lesson", "Shown"]


@dataclass(frozen=True)
class Control:
    """A lesson's one control.

    Attributes:
        options: labels by value, in order.
        ordered: whether options are numbers, for a slider.
        words: whether options are a sentence's words.
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
    """A lesson's picture of one scene.

    Attributes:
        facts: computed text for {{name}}.
        says: one sentence for those who can't see it.
    """

    facts: Mapping[str, str]
    figure: go.Figure
    says: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """One idea on one screen; its text is in `text`, by name.

    Attributes:
        minutes: reading time.
        deeper: addresses of further pages, such as "steps".
        covers: topics, listed in the docs.
        words: pressable by `Scene.word`, and the query; None if none or the bars are words.
        sample: name in `SAMPLES` of a picture or sound replacing the sentence.
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
        """Name the lesson's sentence, picture or sound, for paper."""
        if self.sample is None:
            return f"Sentence: “{scene.text}”"
        one = SAMPLES[self.sample(scene)]
        return f"{one.kind.capitalize()}: {one.shows} ({one.file})"
