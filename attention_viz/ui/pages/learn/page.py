"""The Learn page: its row and its slots."""

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.learn.choice import LEARN_CHOICES
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots

__all__ = ["PAGE"]

# What fills the slot of the first lesson: the less of it, the less moves when the lesson comes.
_WAIT = 120


def _layout(_state: State, row: ControlRow) -> Slots:
    assert row.fold is not None
    named = {"row": row.options, "fold": row.fold, "notes": st.container()}
    wait = st.empty()
    named["lesson"] = st.container(key="learn-body")
    return Slots(PicturePlace(wait, stays=False), _WAIT, named)


PAGE = Page(
    "Learn",
    "learn",
    row=pickers.sentence,
    layout=_layout,
    groups=(LEARN_CHOICES,),
    address_follows_run=True,
    badges="none",
)
