"""The Why page: its controls and its slots."""

import functools
from dataclasses import replace

import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.why.choice import WHY_CHOICES, WhyChoice
from attention_viz.ui.pages.why.stories import offer_stories
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Selection

__all__ = ["PAGE"]

# Of the picture on a wide screen.
_HEIGHT = 690


def _state(selection: Selection) -> State:
    # A head is silenced in what was typed, not in what the model went on with.
    return replace(selection.shared, more=0)


def _controls(state: State, _row: ControlRow) -> None:
    # A model that predicts no words has scores alone.
    visit.settle(WHY_CHOICES, state, default=None if state.facts.predicts else WhyChoice("pair"))


def _layout(_state: State, _row: ControlRow) -> Slots:
    with st.container(key="why-asked", horizontal=True, vertical_alignment="center", gap="small"):
        asked = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
        ranked = st.container(key="why-order", width="content")
        offer_stories()
        running = st.empty()
    with st.container(key="why-put-from", horizontal=True, vertical_alignment="center", gap="small"):
        other, progress = st.empty(), st.empty()
    notes = st.container()
    with st.container(key="stage", height=_HEIGHT, border=False):
        picture, board = st.empty(), st.container()
    named = {"asked": asked, "ranked": ranked, "running": running, "other": other, "told": progress, "notes": notes}
    named |= {"board": board, "beneath": st.container(key="why-beneath")}
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, named, apart=True)


PAGE = Page(
    "Why",
    "why",
    row=functools.partial(
        pickers.choose,
        "Why",
        leave_out=("more",),
        folded="Sentence, model, layer and head, what is asked and how",
    ),
    layout=_layout,
    groups=(WHY_CHOICES,),
    state=_state,
    controls=_controls,
    address_follows_run=True,
)
