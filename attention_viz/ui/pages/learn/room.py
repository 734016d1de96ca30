"""A lesson's slides, made on request, and its neighbour lessons."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from attention_viz.analysis.slides import Slide
from attention_viz.errors import AttentionVizError
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.slides import lesson_slides
from attention_viz.ui import visit
from attention_viz.ui.pages.learn.screen import asked_of
from attention_viz.ui.pages.learn.state import go
from attention_viz.ui.pages.learn.steps import made_exercise
from attention_viz.ui.presenting.button import asked
from attention_viz.ui.presenting.choice import presented
from attention_viz.ui.presenting.host import present

__all__ = ["present_lesson"]


@dataclass
class _Slides:
    """Whether this visit has made slides; then each lesson has them."""

    made: bool = False


def present_lesson(name: str, scene: Scene, seed: int, lessons: Sequence[str]) -> None:
    """Make slides only on request: an exercise may run a model a dozen times."""
    wanted = bool(asked() or presented(st.query_params.to_dict()))
    memory = visit.memory(_Slides)
    if not wanted and not memory.made:
        return
    memory.made = True
    place = lessons.index(name)

    def turn(by: int) -> None:
        go(lessons[place + by])

    present(_slides(name, scene, seed), deck=name, beyond=(place > 0, place < len(lessons) - 1), on_turn=turn)


def _slides(name: str, scene: Scene, seed: int) -> tuple[Slide, ...]:
    """Return a lesson's slides; none if it can't be shown, which the page says."""
    lesson = LESSONS[name]
    try:
        title = f"{list(LESSONS).index(name) + 1}. {lesson.title}"
        exercise = made_exercise(lesson.exercise, scene, seed)
        return lesson_slides(title, "" if lesson.sample else scene.text, asked_of(name, scene), exercise)
    except AttentionVizError:
        return ()
