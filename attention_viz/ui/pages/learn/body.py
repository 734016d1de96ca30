"""The Learn page's body: short lessons on the reader's own sentence, each with a picture and an exercise."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.edits.edit import Edit
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.scene import LONGEST
from attention_viz.serving.request import Request
from attention_viz.serving.runs import draw
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, NOTATIONS, LearnChoice, begun
from attention_viz.ui.pages.learn.screen import Screen, show_screen
from attention_viz.ui.pages.learn.state import (
    chosen,
    go,
    open_progress,
    set_choice,
    settle_course,
    take,
)
from attention_viz.ui.pages.learn.steps import show_lesson
from attention_viz.ui.pages.learn.teaching import present, show_answers, show_link, show_progress
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.themes import theme_name

__all__ = ["show_body"]

_LIST, _SELECT, _NOTATION = "learn-lessons", "learn-lesson", "learn-notation"


def show_body(tools: DeltaGenerator | None, notes: DeltaGenerator) -> None:
    """The lesson that is chosen, on the sentence in the box.

    Args:
        tools: the place of the page's tools; None where a room looks on.
        notes: the place of what can't be had.
    """
    settle_course(tuple(LESSONS), notes)
    choice = chosen()
    seed, address = choice.exercise_seed, pickers.address() | LEARN_CHOICES.address()
    st.query_params.from_dict(address)
    scene = _scene(choice, notes)
    if tools is not None:
        _show_tools(tools, choice, address, tuple(LESSONS))
    with st.container(key="learn-body"):
        if choice.answers == "on" and tools is not None:
            with st.container(key="learn-answers"):
                st.button("Back to the lesson", on_click=set_choice, kwargs={"answers": "off"}, key="learn-back-from")
                show_answers(scene, seed, LESSONS)
        elif tools is None:
            with st.container(key="learn-stage"):
                show_screen(_screen(choice), scene)
            present()
        else:
            _show_lesson(choice, scene, seed)


def _show_tools(place: DeltaGenerator, choice: LearnChoice, address: dict[str, str], lessons: Sequence[str]) -> None:
    """Notation, presenting, link, answers and progress."""
    st.session_state[_NOTATION] = choice.notation
    with place:
        st.selectbox(
            "Notation",
            list(NOTATIONS),
            format_func=lambda name: NOTATIONS[name],
            key=_NOTATION,
            on_change=take,
            args=(_NOTATION, "notation"),
            width=176,
        )
        st.button("Present", on_click=set_choice, kwargs={"present": "on"}, key="learn-present")
        answers = "off" if choice.answers == "on" else "on"
        st.button("Answer sheet", on_click=set_choice, kwargs={"answers": answers}, key="learn-sheet")
        show_link(address)
        show_progress(choice.done, lessons, open_progress)


def _scene(choice: LearnChoice, notes: DeltaGenerator) -> Scene:
    """What lessons and exercises are made of."""
    text, note = begun(st.session_state["text"], LONGEST, EXAMPLES[0])
    if note:
        notes.info(plain(note))
    return Scene(text, _run, choice.choice, choice.notation, theme_name(), word=choice.word)


def _run(model: str, text: str, *, edits: Sequence[Edit] = ()) -> Trace:
    """Never too many at a time; those that a lesson makes by the dozen, one a head, aren't kept for everybody."""
    return draw(Request(model, text), edits=edits, cached=not edits).trace


def _screen(choice: LearnChoice) -> Screen:
    return Screen(choice.lesson, tuple(LESSONS).index(choice.lesson), len(LESSONS), tuple(LESSONS))


def _show_lesson(choice: LearnChoice, scene: Scene, seed: int) -> None:
    """The course's list, the lesson and its exercise."""
    left, right = st.columns([1, 6], gap="medium")
    with left.container(key="learn-list"):
        _show_list(choice)
    with right.container(key="learn-screen"):
        with st.container(key="learn-printed"):
            st.markdown(plain(f"Sentence: “{scene.text}”, seed {seed}"))
        show_lesson(_screen(choice), choice, scene)


def _show_list(choice: LearnChoice) -> None:
    """Every lesson, those that are done ticked; as a list, and folded up on a phone."""
    names = list(LESSONS)

    def called(name: str) -> str:
        return f"{names.index(name) + 1}. {LESSONS[name].title}{' ✓' if name in choice.done else ''}"

    def chosen_in(key: str) -> None:
        go(st.session_state[key])

    for key in (_LIST, _SELECT):
        st.session_state[key] = choice.lesson
    st.radio(
        "Lessons",
        names,
        format_func=lambda name: plain(called(name)),
        key=_LIST,
        label_visibility="collapsed",
        on_change=chosen_in,
        args=(_LIST,),
    )
    st.selectbox("Lesson", names, format_func=called, key=_SELECT, on_change=chosen_in, args=(_SELECT,))
