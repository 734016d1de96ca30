"""The Heads page: its controls and its slots."""

import functools

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits_choice import CHANGES
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.pages.heads.standing import may_stay
from attention_viz.ui.pages.heads.texts_box import pick_texts
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots

__all__ = ["PAGE"]

# Of the atlas with what is below it, in pixels.
_HEIGHT = 720


def _controls(_state: State, row: ControlRow) -> None:
    with row.options:
        pick_texts()


def _layout(state: State, _row: ControlRow) -> Slots:
    notes, picture = st.container(), PicturePlace.of(may_stay(state))
    return Slots(picture, _HEIGHT, {"notes": notes})


PAGE = Page(
    "Heads",
    "heads",
    row=functools.partial(pickers.choose, "Heads", with_readings=True),
    layout=_layout,
    groups=(HEADS_CHOICES, CHANGES),
    controls=_controls,
    address_follows_run=True,
)
