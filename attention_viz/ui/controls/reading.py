"""How the weights on a page are read: the picker, and what it means for layer and head."""

import streamlit as st

from attention_viz.analysis.readings import READINGS
from attention_viz.ui.address import State

__all__ = ["head", "head_name", "is_raw", "show_picker", "take_head", "together"]


def is_raw(state: State) -> bool:
    """Whether the page shows the weights as they ran, token by token."""
    return state.reading == "raw" and state.words == "off"


def together(state: State) -> bool:
    """Whether the reading takes a layer's heads together."""
    return not READINGS[state.reading].per_head


def head_name(state: State) -> str:
    """What is shown of the layer: "head 4", or all heads together."""
    return "all heads together" if together(state) else f"head {state.head}"


def head(state: State) -> int:
    """Which head of the reading is on the screen: of one that takes heads together, the only one."""
    return 0 if together(state) else state.head


def take_head(chosen: int) -> None:
    """Keep a head that was chosen in a picture; one that stands for all heads is no choice."""
    if READINGS[st.session_state["reading"]].per_head:
        st.session_state["head"] = chosen


def show_picker() -> None:
    """The picker, beside those of layer and head."""
    st.selectbox(
        "Reading",
        list(READINGS),
        format_func=lambda name: READINGS[name].label,
        key="reading",
        width=150,
        persist_state="session",
    )
