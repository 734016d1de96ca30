"""The Explore page: its controls and its slots."""

import functools

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.explore.choice import EXPLORE
from attention_viz.ui.pages.explore.picture import show_recorded
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import place_picture
from attention_viz.ui.runner.page import Page, Slots

__all__ = ["CANDIDATES_TITLE", "CANDIDATES_WIDTH", "PAGE", "goes_on_for_sure"]

# The explorer's height on a wide screen.
_HEIGHT = 600
# Of the panel with what comes next.
CANDIDATES_TITLE, CANDIDATES_WIDTH = "What comes next", 264


def _layout(state: State, _row: ControlRow) -> Slots:
    notes = st.container()
    # This height holds until the page's style has arrived, which lets the explorer have its own.
    with st.container(key="stage", height=_HEIGHT, border=False):
        with st.container(key="views", horizontal=True):
            # Side by side, not one in the other: the explorer stays as it is while the panel comes and goes.
            picture, candidates = place_picture(state, SETTINGS.longest_text), _reserve_candidates(state)
        below = st.container()
    named = {"notes": notes, "candidates": candidates, "below": below, "words": st.container()}
    return Slots(picture, _HEIGHT, named)


def goes_on_for_sure(state: State) -> bool:
    """Return whether any text will have a predictions panel."""
    return state.facts.continues_text and opening.opened() is None


def _reserve_candidates(state: State) -> DeltaGenerator:
    slot = st.empty()
    if not goes_on_for_sure(state):
        return slot
    with slot.container(key="candidates", width=CANDIDATES_WIDTH):
        inside = st.empty()
    inside.markdown(f"**{CANDIDATES_TITLE}**")
    return inside


def _answer(state: State, _row: ControlRow) -> None:
    visit.settle(EXPLORE, state)


PAGE = Page(
    "Explore",
    "explore",
    row=functools.partial(pickers.choose, "Explore", with_readings=True),
    layout=_layout,
    groups=(EXPLORE,),
    controls=_answer,
    recorded=show_recorded,
    heads_first=True,
)
