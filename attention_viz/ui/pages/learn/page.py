"""The Learn page before anything heavy is there: header, the one row, and a place for each part that follows."""

import streamlit as st

from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.learn.choice import ADDRESS
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]

# What fills the place of the first lesson: the less of it, the less moves when the lesson comes.
_WAIT = 120


def show_page() -> None:
    """Everything on the page, top to bottom; what waits for torch comes after what doesn't."""
    pickers.begin(*ADDRESS)
    show_header()
    row, fold = pickers.sentence()
    notes, lesson = st.container(), st.empty()
    with importing("learn", None, lesson, _WAIT):
        from attention_viz.ui.pages.learn.body import show_body
    lesson.empty()
    show_body(row, fold, notes)
