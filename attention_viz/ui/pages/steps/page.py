"""The Step by step page: controls and slots."""

import functools

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.steps.choice import STEP_CHOICES
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots

__all__ = ["PAGE"]

_HEIGHT = 750


def _layout(_state: State, row: ControlRow) -> Slots:
    named = {"options": row.options, "controls": st.container(), "notes": st.container()}
    with st.container(key="steps-picture", gap=None):
        # A slot apart, as an empty one loses its content whenever the page runs, and with it the focus.
        picture, named["pipeline"] = st.empty(), st.container()
    named["below"] = st.container()
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, named, apart=True)


PAGE = Page(
    "Step by step",
    "steps",
    row=functools.partial(pickers.choose, "Step by step"),
    layout=_layout,
    groups=(STEP_CHOICES,),
    address_follows_run=True,
)
