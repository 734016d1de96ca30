"""The Learn page's parts: short lessons, pictures and exercises."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from attention_viz.edits.edit import Edit
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.scene import LONGEST
from attention_viz.serving.facts import facts_of
from attention_viz.serving.request import Request
from attention_viz.serving.runs import run_request
from attention_viz.trace.shown.kind import MEDIA
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import EXAMPLES, State
from attention_viz.ui.controls.fold import show_fold
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, NOTATIONS, LearnChoice, begun
from attention_viz.ui.pages.learn.page import PAGE
from attention_viz.ui.pages.learn.room import present_lesson
from attention_viz.ui.pages.learn.screen import Screen
from attention_viz.ui.pages.learn.state import Tries, begin_lesson, open_progress, set_choice
from attention_viz.ui.pages.learn.steps import show_lesson
from attention_viz.ui.pages.learn.teaching import fit_paper, show_answers, show_export, show_progress
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.themes import theme_name
from attention_viz.ui.runner.loading import study_as_it_is
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import Selection, answer

__all__ = ["Course", "load", "settle", "study", "view"]


@dataclass(frozen=True)
class Course:
    """The course's text.

    Attributes:
        note: its notice; empty for none.
    """

    text: str
    note: str


def load(state: State, slots: Slots) -> Course:
    """Return the course's text without running anything."""
    if visit.is_unread(LEARN_CHOICES):
        visit.memory(Tries).answer = "", None
    slots.picture.place.empty()
    return Course(*begun(state.text, LONGEST, EXAMPLES[0]))


def settle(selection: Selection, _course: Course) -> Selection:
    """Select an existing lesson."""
    return answer(selection, LEARN_CHOICES, tuple(LESSONS))


study = study_as_it_is


def view(course: Course, selection: Selection) -> Parts:
    """Return the page's parts for the chosen lesson."""
    choice = selection.of(LEARN_CHOICES)
    scene = Scene(course.text, _run, choice.choice, choice.notation, theme_name(), word=choice.word)
    lesson = _show_answers if choice.answers == "on" else _show_lesson
    return Parts(
        [
            Part("notes", functools.partial(_show_notes, course, choice)),
            Part("fold", lambda: show_fold("Sentence and lesson", _called(choice.lesson, choice))),
            Part("row", functools.partial(_show_pickers, choice, PAGE.address(selection))),
            Part("lesson", functools.partial(lesson, choice, scene, choice.exercise_seed)),
            Part("lesson", fit_paper),
        ],
        slides=functools.partial(present_lesson, choice.lesson, scene, choice.exercise_seed, tuple(LESSONS)),
    )


def _show_notes(course: Course, choice: LearnChoice) -> None:
    _show_chip(choice)
    if course.note:
        tell(course.note, loud=True, short="Example instead" if course.text == EXAMPLES[0] else "Text cut")


def _show_pickers(choice: LearnChoice, address: Mapping[str, str]) -> None:
    _pick_lesson(choice)
    _show_options(choice)
    show_export(address, choice.done)


def _show_answers(_choice: LearnChoice, scene: Scene, seed: int) -> None:
    with st.container(key="learn-answers"):
        st.button("Back to the lesson", on_click=set_choice, kwargs={"answers": "off"}, key="learn-back-from")
        show_answers(scene, seed, LESSONS)


def _show_options(choice: LearnChoice) -> None:
    with st.popover("Options", key="options"):
        widgets.show(
            st.selectbox,
            "Notation",
            of=LEARN_CHOICES,
            name="notation",
            key="learn-notation",
            options=list(NOTATIONS),
            format_func=NOTATIONS.__getitem__,
        )
        answers = "off" if choice.answers == "on" else "on"
        st.button("Answer sheet", on_click=set_choice, kwargs={"answers": answers}, key="learn-sheet", width="stretch")
        show_progress(choice.done, tuple(LESSONS), open_progress)


def _show_chip(choice: LearnChoice) -> None:
    if choice.notation != next(iter(NOTATIONS)):
        with st.container(key="learn-chips", horizontal=True, gap="xsmall"):
            label = NOTATIONS[choice.notation].capitalize()
            usual = {"notation": next(iter(NOTATIONS))}
            st.button(f"{label} ✕", key="chip-notation", on_click=set_choice, kwargs=usual, help="Take it off")


def _run(model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None) -> Trace:
    """Limit concurrent runs; don't cache a lesson's dozens (one a head) for everybody."""
    asked = Request(model, shown=text) if facts_of(model).reads in MEDIA else Request(model, text)
    return run_request(asked, beside=beside, edits=edits, cached=not edits).trace


def _screen(choice: LearnChoice) -> Screen:
    return Screen(choice.lesson, tuple(LESSONS).index(choice.lesson), len(LESSONS), tuple(LESSONS))


def _show_lesson(choice: LearnChoice, scene: Scene, seed: int) -> None:
    left, right = st.columns([1, 6], gap="medium")
    with left.container(key="learn-list"):
        _show_list(choice)
    with right.container(key="learn-screen"):
        with st.container(key="learn-printed"):
            st.markdown(plain(f"{LESSONS[choice.lesson].made_from(scene)}, seed {seed}"))
        show_lesson(_screen(choice), choice, scene)


def _show_list(choice: LearnChoice) -> None:
    _show_lessons(st.radio, "Lessons", "learn-lessons", lambda name: plain(_called(name, choice)))


def _pick_lesson(choice: LearnChoice) -> None:
    _show_lessons(st.selectbox, "Lesson", "learn-lesson", lambda name: _called(name, choice), width=250)


def _show_lessons(
    widget: Callable[..., Any], label: str, key: str, format_func: Callable[[str], str], **look: Any
) -> None:
    widgets.show(
        widget,
        label,
        of=LEARN_CHOICES,
        name="lesson",
        key=key,
        options=list(LESSONS),
        then=begin_lesson,
        format_func=format_func,
        label_visibility="collapsed",
        **look,
    )


def _called(name: str, choice: LearnChoice) -> str:
    return f"{list(LESSONS).index(name) + 1}. {LESSONS[name].title}{' ✓' if name in choice.done else ''}"
