"""Where each part of the Explore page stands, held from the first moment on."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import PicturePlace, place_picture
from attention_viz.ui.parts.explorer import HeadPlace

__all__ = ["CANDIDATES_TITLE", "CANDIDATES_WIDTH", "HEIGHT", "Places", "goes_on_for_sure", "hold_places"]

# The explorer's height on a wide screen, so that nothing below jumps when it arrives.
HEIGHT = 600
# Of the panel with what comes next.
CANDIDATES_TITLE, CANDIDATES_WIDTH = "What comes next", 264


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        line: holds badge and downloads; emptied where there is nothing to say or to take away.
        badge: how far the model's output is from ours.
        downloads: what can be taken away.
        notes: what was cut, and what is shown instead of what.
        head: of a long text, handed over beside the picture.
        explorer: the picture.
        candidates: the likeliest tokens beside it.
        below: what the chosen head writes, where nothing stands beside the picture.
    """

    line: DeltaGenerator
    badge: Badge
    downloads: DeltaGenerator
    notes: DeltaGenerator
    head: HeadPlace
    explorer: PicturePlace
    candidates: DeltaGenerator
    below: DeltaGenerator


def hold_places(state: State, bar: DeltaGenerator, head: HeadPlace) -> Places:
    """Hold them all, top to bottom; the first two at the end of the row, in `bar`; a long text's head before all."""
    line = bar.empty()
    with line.container(key="tools", horizontal=True, vertical_alignment="center", gap="small"):
        downloads, badge = st.container(key="downloads", width="content"), Badge()
    notes = st.container()
    # This height holds until the page's style has arrived, which lets the explorer have its own.
    with st.container(key="stage", height=HEIGHT, border=False):
        with st.container(key="views", horizontal=True):
            # Side by side, not one in the other: the explorer stays as it is while the panel comes and goes.
            explorer, candidates = place_picture(state, SETTINGS.longest_text), _hold_candidates(state)
        below = st.container()
    return Places(line, badge, downloads, notes, head, explorer, candidates, below)


def goes_on_for_sure(state: State) -> bool:
    """Whether there will be a panel of what comes next, whatever the text."""
    return state.facts.continues_text and opening.opened() is None


def _hold_candidates(state: State) -> DeltaGenerator:
    """The panel's place, which a decoder is sure to need."""
    place = st.empty()
    if not goes_on_for_sure(state):
        return place
    with place.container(key="candidates", width=CANDIDATES_WIDTH):
        inside = st.empty()
    inside.markdown(f"**{CANDIDATES_TITLE}**")
    return inside
