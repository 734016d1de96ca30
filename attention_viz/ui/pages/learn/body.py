"""The Learn page's body: short lessons on the reader's own sentence, each with a picture and an exercise."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.edits.edit import Edit
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.scene import LONGEST
from attention_viz.serving.facts import facts_of
from attention_viz.serving.request import Request
from attention_viz.serving.runs import draw
from attention_viz.serving.things.uploads import KINDS
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.fold import show_fold
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, NOTATIONS, LearnChoice, begun
from attention_viz.ui.pages.learn.room import present_lesson
from attention_viz.ui.pages.learn.screen import Screen
from attention_viz.ui.pages.learn.state import begin_lesson, chosen, open_progress, set_choice, settle_course
from attention_viz.ui.pages.learn.steps import show_lesson
from attention_viz.ui.pages.learn.teaching import fit_paper, show_answers, show_export, show_progress
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.themes import theme_name
from attention_viz.ui.presenting.choice import presented

__all__ = ["show_body"]


def show_body(row: DeltaGenerator, fold: DeltaGenerator, notes: DeltaGenerator) -> None:
    """Show the chosen lesson, on the sentence in the box.

    Args:
        row: the container of the page's own pickers.
        fold: the container of the line that replaces the row on a phone.
        notes: the container of the notices.
    """
    text, note = begun(visit.shared().text, LONGEST, EXAMPLES[0])
    settle_course(tuple(LESSONS), text, notes)
    choice = chosen()
    seed, address = choice.exercise_seed, pickers.address() | visit.written(LEARN_CHOICES)
    st.query_params.from_dict(address | presented(st.query_params.to_dict()))
    with notes:
        _show_chip(choice)
    with fold:
        show_fold("Sentence and lesson", _called(choice.lesson, choice))
    if note:
        tell(note, loud=True, short="Example instead" if text == EXAMPLES[0] else "Text cut")
    scene = Scene(text, _run, choice.choice, choice.notation, theme_name(), word=choice.word)
    with row:
        _pick_lesson(choice)
        _show_options(choice)
        show_export(address, choice.done)
    with st.container(key="learn-body"):
        if choice.answers == "on":
            with st.container(key="learn-answers"):
                st.button("Back to the lesson", on_click=set_choice, kwargs={"answers": "off"}, key="learn-back-from")
                show_answers(scene, seed, LESSONS)
        else:
            _show_lesson(choice, scene, seed)
    fit_paper()
    present_lesson(choice.lesson, scene, seed, tuple(LESSONS))


def _show_options(choice: LearnChoice) -> None:
    """Show what is rarely used: the notation, the answer sheet, and progress from a file."""
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
    """Show the notation, unless it is the usual one."""
    if choice.notation != next(iter(NOTATIONS)):
        with st.container(key="learn-chips", horizontal=True, gap="xsmall"):
            label = NOTATIONS[choice.notation].capitalize()
            usual = {"notation": next(iter(NOTATIONS))}
            st.button(f"{label} ✕", key="chip-notation", on_click=set_choice, kwargs=usual, help="Take it off")


def _run(model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None) -> Trace:
    """Never too many at a time; those that a lesson makes by the dozen, one a head, aren't kept for everybody."""
    asked = Request(model, shown=text) if facts_of(model).reads in KINDS else Request(model, text)
    return draw(asked, beside=beside, edits=edits, cached=not edits).trace


def _screen(choice: LearnChoice) -> Screen:
    return Screen(choice.lesson, tuple(LESSONS).index(choice.lesson), len(LESSONS), tuple(LESSONS))


def _show_lesson(choice: LearnChoice, scene: Scene, seed: int) -> None:
    """Show the list of lessons, the lesson and its exercise."""
    left, right = st.columns([1, 6], gap="medium")
    with left.container(key="learn-list"):
        _show_list(choice)
    with right.container(key="learn-screen"):
        with st.container(key="learn-printed"):
            st.markdown(plain(f"{LESSONS[choice.lesson].made_from(scene)}, seed {seed}"))
        show_lesson(_screen(choice), choice, scene)


def _show_list(choice: LearnChoice) -> None:
    """List all lessons, with a tick for each solved exercise, if there is room for a list."""
    _show_lessons(st.radio, "Lessons", "learn-lessons", lambda name: plain(_called(name, choice)))


def _pick_lesson(choice: LearnChoice) -> None:
    """Show the picker of lessons in the row."""
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
