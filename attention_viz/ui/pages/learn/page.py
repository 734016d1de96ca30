"""The Learn page before anything heavy is there: header, sentence, and a place for each part that follows."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.learn.choice import ADDRESS
from attention_viz.ui.pages.learn.state import is_presented
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]

# What fills the place of the first lesson: the less of it, the less moves when the lesson comes.
_WAIT = 120


def show_page() -> None:
    """Everything on the page, top to bottom; what waits for torch comes after what doesn't."""
    pickers.begin(*ADDRESS)
    presenting = is_presented()
    tools = None if presenting else _show_top()
    notes, lesson = st.container(), st.empty()
    with importing("learn", None, lesson, _WAIT):
        from attention_viz.ui.pages.learn.body import show_body
    lesson.empty()
    show_body(tools, notes)


def _show_top() -> DeltaGenerator:
    """Menu and sentence; the place for the page's tools."""
    show_header(slides=False)
    with st.container(key="learn-top"):
        sentence, tools = st.columns(2)
    with sentence:
        pickers.sentence()
    return tools.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="learn-tools")
