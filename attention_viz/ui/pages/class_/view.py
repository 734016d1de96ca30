"""The Class page's parts."""

import functools
from dataclasses import dataclass

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.lesson import LESSONS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls.fold import show_fold
from attention_viz.ui.front.teacher import has_key, is_teacher
from attention_viz.ui.pages.class_.links import show_links, show_papers
from attention_viz.ui.pages.class_.opened import show_progress
from attention_viz.ui.pages.class_.page import CLASS_CHOICES
from attention_viz.ui.parts.markdown import as_sentence
from attention_viz.ui.runner.loading import study_as_it_is
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import Selection, answer

_KEY = "class-key"
study = study_as_it_is


@dataclass
class Teacher:
    """Whether this visitor typed the teacher's key, and the last problem."""

    known: bool = False
    problem: str = ""


def load(_state: State, slots: Slots) -> Teacher:
    """Return the visitor's standing."""
    slots.picture.place.empty()
    return visit.memory(Teacher)


def settle(selection: Selection, _teacher: Teacher) -> Selection:
    """Select existing lessons."""
    return answer(selection, CLASS_CHOICES, tuple(LESSONS))


def view(teacher: Teacher, selection: Selection) -> Parts:
    """Return the page's parts: the question for the key, or files and links."""
    fold = Part("fold", lambda: show_fold("Sentence", "Class"))
    if not teacher.known:
        return Parts([fold, Part("class", functools.partial(_ask_key, teacher))])
    choice, text = selection.of(CLASS_CHOICES), selection.shared.text
    parts = (show_progress, functools.partial(show_links, choice, text), functools.partial(show_papers, choice, text))
    return Parts([fold, *(Part("class", part) for part in parts)])


def _ask_key(teacher: Teacher) -> None:
    st.markdown("# For the teacher")
    if not has_key():
        st.info("This server has no teacher’s key. Start it with `make run` or set `ATTENTION_VIZ_TEACHER`.")
        return
    st.markdown("The server printed the teacher’s key when it started.")
    with st.form("class-key-form", border=False):
        st.text_input("Teacher’s key", key=_KEY, type="password", width=320)
        st.form_submit_button("Open class", on_click=_take_key, type="primary")
    if teacher.problem:
        st.error(as_sentence(teacher.problem))


def _take_key() -> None:
    teacher, typed = visit.memory(Teacher), widgets.content(_KEY)
    try:
        teacher.known = isinstance(typed, str) and is_teacher(typed)
    except AttentionVizError as error:
        teacher.problem = str(error)
    else:
        teacher.problem = "" if teacher.known else "this isn’t the teacher’s key; see the server’s terminal"
