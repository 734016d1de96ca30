"""What a reader of the course has chosen, kept for a visit: taken from the address once, changed by what is pressed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.controls.pickers import went_through_history
from attention_viz.ui.pages.learn.choice import LearnChoice, read_choice
from attention_viz.ui.parts.notices import tell_notices

__all__ = ["GIVEN", "begin_course", "chosen", "go", "mark_done", "open_progress", "set_choice", "take", "tell_course"]

# What was answered last, told only as long as its exercise stays on the screen.
GIVEN = "learn-given"

_CHOICE, _ASKED, _FIRST, _NOTICES = "learn", "learn-asked", "learn-first", "learn-notices"


def begin_course() -> str:
    """At the first run and after Back or Forward, remember what the address asks for; whether the page is presented."""
    if _CHOICE not in st.session_state or went_through_history():
        st.session_state[_ASKED] = st.query_params.to_dict()
        st.session_state.pop(GIVEN, None)
        return "on" if st.session_state[_ASKED].get("present") == "on" else "off"
    return chosen().present


def tell_course(lessons: Sequence[str], place: DeltaGenerator) -> None:
    """Take what the address asks for as far as it can be had, and say what can't, until something else is chosen.

    Args:
        lessons: the course's lessons, in order, known only once torch is there.
        place: for what is said.
    """
    asked: dict[str, str] | None = st.session_state.pop(_ASKED, None)
    if asked is not None:
        st.session_state[_CHOICE], st.session_state[_NOTICES] = read_choice(asked, lessons)
        st.session_state[_FIRST] = chosen()
    if chosen() == st.session_state[_FIRST]:
        with place:
            tell_notices(st.session_state[_NOTICES])


def chosen() -> LearnChoice:
    """What is chosen now."""
    return st.session_state[_CHOICE]


def set_choice(**changes: Any) -> None:
    """Choose something else, by the names of `LearnChoice`."""
    st.session_state[_CHOICE] = replace(chosen(), **changes)


def take(key: str, name: str) -> None:
    """Take over what a widget was set to.

    Args:
        key: the widget's.
        name: a field of `LearnChoice`.
    """
    if st.session_state[key] is not None:
        set_choice(**{name: st.session_state[key]})


def go(lesson: str) -> None:
    """Open a lesson, its control as the lesson sets it."""
    st.session_state.pop(GIVEN, None)
    set_choice(lesson=lesson, choice="", answers="off")


def mark_done() -> None:
    """Note that the exercise of the lesson on the screen was solved."""
    _add_done((chosen().lesson,))


def open_progress(done: tuple[str, ...]) -> None:
    """Add what a file says is done to what is."""
    _add_done(done)


def _add_done(more: Sequence[str]) -> None:
    from attention_viz.lesson import LESSONS

    known = {*chosen().done, *more}
    set_choice(done=tuple(name for name in LESSONS if name in known))
