"""The Learn page's body: short lessons on the reader's own sentence, each with a picture and an exercise."""

from collections.abc import Sequence

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
from attention_viz.ui import visit
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.fold import show_fold
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, NOTATIONS, LearnChoice, begun
from attention_viz.ui.pages.learn.room import present_lesson
from attention_viz.ui.pages.learn.screen import Screen
from attention_viz.ui.pages.learn.state import chosen, go, open_progress, set_choice, settle_course, take
from attention_viz.ui.pages.learn.steps import show_lesson
from attention_viz.ui.pages.learn.teaching import fit_paper, show_answers, show_export, show_progress
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.themes import theme_name
from attention_viz.ui.presenting.choice import presented

__all__ = ["show_body"]

_LIST, _SELECT, _NOTATION = "learn-lessons", "learn-lesson", "learn-notation"


def show_body(row: DeltaGenerator, fold: DeltaGenerator, notes: DeltaGenerator) -> None:
    """The lesson that is chosen, on the sentence in the box.

    Args:
        row: the place in the one row of the page's own pickers.
        fold: the place of the line that stands for the row on a phone.
        notes: the place of what can't be had.
    """
    settle_course(tuple(LESSONS), notes)
    choice = chosen()
    seed, address = choice.exercise_seed, pickers.address() | visit.written(LEARN_CHOICES)
    st.query_params.from_dict(address | presented(st.query_params.to_dict()))
    with notes:
        _show_chip(choice)
    with fold:
        show_fold("Sentence and lesson", _called(choice.lesson, choice))
    scene = _scene(choice)
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
    """What is rarely touched: notation, the answers, and progress from a file."""
    st.session_state[_NOTATION] = choice.notation
    with st.popover("Options", key="options"):
        st.selectbox(
            "Notation",
            list(NOTATIONS),
            format_func=lambda name: NOTATIONS[name],
            key=_NOTATION,
            on_change=take,
            args=(_NOTATION, "notation"),
        )
        answers = "off" if choice.answers == "on" else "on"
        st.button("Answer sheet", on_click=set_choice, kwargs={"answers": answers}, key="learn-sheet", width="stretch")
        show_progress(choice.done, tuple(LESSONS), open_progress)


def _show_chip(choice: LearnChoice) -> None:
    """The notation, where it isn't the usual one."""
    if choice.notation != next(iter(NOTATIONS)):
        with st.container(key="learn-chips", horizontal=True, gap="xsmall"):
            said = NOTATIONS[choice.notation].capitalize()
            usual = {"notation": next(iter(NOTATIONS))}
            st.button(f"{said} ✕", key="chip-notation", on_click=set_choice, kwargs=usual, help="Take it off")


def _scene(choice: LearnChoice) -> Scene:
    """What lessons and exercises are made of."""
    text, note = begun(st.session_state["text"], LONGEST, EXAMPLES[0])
    if note:
        tell(note, loud=True, short="Example instead" if text == EXAMPLES[0] else "Text cut")
    return Scene(text, _run, choice.choice, choice.notation, theme_name(), word=choice.word)


def _run(model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None) -> Trace:
    """Never too many at a time; those that a lesson makes by the dozen, one a head, aren't kept for everybody."""
    asked = Request(model, shown=text) if facts_of(model).reads in KINDS else Request(model, text)
    return draw(asked, beside=beside, edits=edits, cached=not edits).trace


def _screen(choice: LearnChoice) -> Screen:
    return Screen(choice.lesson, tuple(LESSONS).index(choice.lesson), len(LESSONS), tuple(LESSONS))


def _show_lesson(choice: LearnChoice, scene: Scene, seed: int) -> None:
    """The course's list, the lesson and its exercise."""
    left, right = st.columns([1, 6], gap="medium")
    with left.container(key="learn-list"):
        _show_list(choice)
    with right.container(key="learn-screen"):
        with st.container(key="learn-printed"):
            st.markdown(plain(f"{LESSONS[choice.lesson].made_from(scene)}, seed {seed}"))
        show_lesson(_screen(choice), choice, scene)


def _show_list(choice: LearnChoice) -> None:
    """Every lesson, those that are done ticked, where there is room for a list."""
    st.session_state[_LIST] = choice.lesson
    st.radio(
        "Lessons",
        list(LESSONS),
        format_func=lambda name: plain(_called(name, choice)),
        key=_LIST,
        label_visibility="collapsed",
        on_change=_take_lesson,
        args=(_LIST,),
    )


def _pick_lesson(choice: LearnChoice) -> None:
    """The same in the row."""
    st.session_state[_SELECT] = choice.lesson
    st.selectbox(
        "Lesson",
        list(LESSONS),
        format_func=lambda name: _called(name, choice),
        key=_SELECT,
        label_visibility="collapsed",
        on_change=_take_lesson,
        args=(_SELECT,),
        width=250,
    )


def _called(name: str, choice: LearnChoice) -> str:
    return f"{list(LESSONS).index(name) + 1}. {LESSONS[name].title}{' ✓' if name in choice.done else ''}"


def _take_lesson(key: str) -> None:
    go(st.session_state[key])
