"""The Heads page before anything heavy is there: header, pickers, and a place for each part that follows."""

import streamlit as st

from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.heads.choice import ADDRESS
from attention_viz.ui.pages.heads.standing import may_stay
from attention_viz.ui.pages.heads.texts_box import pick_texts
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]

_HEIGHT = 720


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS)
    show_header()
    row = pickers.choose("Heads", with_readings=True)
    with row.options:
        pick_texts()
    state, bar = row.state, row.bar
    notes, picture = st.container(), PicturePlace.of(may_stay(state))
    with importing("heads", state, picture.to_fill(), _HEIGHT):
        from attention_viz.ui.pages.heads.body import show_body
    show_body(state, bar, notes, picture, _HEIGHT)
