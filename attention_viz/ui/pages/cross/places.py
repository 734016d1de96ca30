"""Where each part of the Cross-attention page stands, held from the first moment on."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.address import State
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import PicturePlace, place_picture

__all__ = ["HEIGHT", "Places", "hold_places"]

# The explorer's height on a wide screen, so that nothing below jumps when it arrives.
HEIGHT = 560


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        line: holds badge and downloads; emptied where there is nothing to say or to take away.
        badge: how far the model's output is from ours.
        downloads: what can be taken away.
        notes: what was cut, and what is shown instead of what.
        explorer: the picture.
        beside: what is said, and the alignment.
    """

    line: DeltaGenerator
    badge: Badge
    downloads: DeltaGenerator
    notes: DeltaGenerator
    explorer: PicturePlace
    beside: DeltaGenerator


def hold_places(state: State, bar: DeltaGenerator) -> Places:
    """Hold them all, top to bottom; the first two at the end of the row, in `bar`."""
    line = bar.empty()
    with line.container(key="tools", horizontal=True, vertical_alignment="center", gap="small"):
        downloads, badge = st.container(key="downloads", width="content"), Badge()
    notes = st.container()
    with st.container(key="cross"):
        left, right = st.columns([3.35, 1])
    with left.container(key="stage", height=HEIGHT, border=False):
        explorer = place_picture(state)
    return Places(line, badge, downloads, notes, explorer, right)
