"""The reading's picker, layer and head."""

import streamlit as st

from attention_viz.analysis.readings import READINGS
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.selection import SHARED


def is_raw(state: State) -> bool:
    """Return whether the page shows raw weights, token by token."""
    return state.reading == "raw" and state.words == "off"


def together(state: State) -> bool:
    """Return whether the reading merges a layer's heads."""
    return not READINGS[state.reading].per_head


def head_name(state: State) -> str:
    """Return "head 4", or a name for all heads together."""
    return "all heads together" if together(state) else f"head {state.head}"


def head(state: State) -> int:
    """Return the reading's shown head, or its only one."""
    return 0 if together(state) else state.head


def show_picker() -> None:
    """Draw the picker beside layer and head."""
    widgets.show(
        st.selectbox,
        "Reading",
        of=SHARED,
        name="reading",
        options={name: one.label for name, one in READINGS.items()},
        width=150,
    )
