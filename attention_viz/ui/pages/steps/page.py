"""The Step by step page before anything heavy is there: header, pickers, and a place for each part that follows."""

import streamlit as st

from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.steps.choice import ADDRESS
from attention_viz.ui.pages.steps.places import Places
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]

_HEIGHT = 750


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS)
    show_header()
    row = pickers.choose("Step by step")
    state, bar = row.state, row.bar
    controls, notes = st.container(), st.container()
    with st.container(key="steps-picture", gap=None):
        # A place apart, as an empty one loses what stands in it whenever the page runs, and with it the focus.
        picture, pipeline = st.empty(), st.container()
    below = st.container()
    with importing("steps", state, picture, _HEIGHT):
        from attention_viz.ui.pages.steps.body import show_body
    show_body(state, Places(controls, row.options, notes, picture, pipeline, below, bar), _HEIGHT)
