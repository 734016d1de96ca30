"""What a reader of the course has chosen, taken from the address once and changed by what is pressed."""

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui import visit
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES, LearnChoice
from attention_viz.ui.parts.notices import show_notices

__all__ = [
    "ANSWER",
    "another_exercise",
    "chosen",
    "go",
    "mark_done",
    "open_progress",
    "set_choice",
    "settle_course",
    "take",
]

# What was answered last, shown only as long as its exercise stays on the screen.
ANSWER = "learn-given"

_MOST_SEEDS = 10_000


def settle_course(lessons: Sequence[str], place: DeltaGenerator) -> None:
    """Take what the address asks for as far as it can be had, and say what can't, until something else is chosen.

    Args:
        lessons: the course's lessons, in order, known only once torch is there.
        place: for what is said.
    """
    if visit.is_unread(LEARN_CHOICES):
        st.session_state.pop(ANSWER, None)
    visit.settle(LEARN_CHOICES, lessons)
    with place:
        show_notices(visit.notices(LEARN_CHOICES))


def chosen() -> LearnChoice:
    """What is chosen now."""
    return visit.chosen(LEARN_CHOICES)


def set_choice(**changes: Any) -> None:
    """Choose something else, by the names of `LearnChoice`."""
    visit.pick(LEARN_CHOICES, **changes)


def take(key: str, name: str) -> None:
    """Take over what a widget was set to.

    Args:
        key: the widget's.
        name: a field of `LearnChoice`.
    """
    if st.session_state[key] is not None:
        # What was guessed was guessed of another setting.
        known = {"guess": "shown"} if name == "choice" and chosen().guess else {}
        set_choice(**{name: st.session_state[key]}, **known)


def go(lesson: str) -> None:
    """Open a lesson, its control as the lesson sets it."""
    st.session_state.pop(ANSWER, None)
    set_choice(lesson=lesson, choice="", guess="", word=None, answers="off")


def another_exercise() -> None:
    """Ask for other exercises of the same kinds."""
    set_choice(exercise_seed=(chosen().exercise_seed + 1) % _MOST_SEEDS)


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
