"""The question for a student's number, which a class's link asks once."""

import streamlit as st

from attention_viz.lesson import Scene
from attention_viz.lesson.progress.record import STUDENTS
from attention_viz.lesson.translation import translate
from attention_viz.ui import widgets
from attention_viz.ui.pages.learn.page import LearnChoice, take_number
from attention_viz.ui.parts.markdown import plain

_KEY = "learn-number"


def show_number(_choice: LearnChoice, _scene: Scene, _seed: int) -> None:
    """Ask for the number."""
    with st.container(key="learn-ask-number"):
        st.markdown(f"# {plain(translate('Which number did your teacher give you?'))}")
        st.markdown(plain(translate("Your number gives you exercises of your own.")))
        with st.form(f"{_KEY}-form", border=False):
            label = translate("Your number ({first} to {last})", first=STUDENTS.start, last=STUDENTS.stop - 1)
            st.number_input(label, STUDENTS.start, STUDENTS.stop - 1, None, key=_KEY, width=240)
            st.form_submit_button(translate("Start"), on_click=_take, type="primary")


def _take() -> None:
    number = widgets.content(_KEY)
    if type(number) is int and number in STUDENTS:
        take_number(number)
