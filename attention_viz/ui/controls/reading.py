"""How the weights on a page are read: the picker, and what it means for layer and head."""

import streamlit as st

from attention_viz.ui.address import READING_NAMES, State

__all__ = ["LABELS", "head", "head_name", "is_raw", "show_picker", "take_head", "together"]

# As in `attention_viz.analysis.readings`, which needs torch: the first paint doesn't wait for that.
LABELS = dict(zip(READING_NAMES, ("Raw weights", "Norms", "Rollout", "Flow", "Gradients"), strict=True))
_TOGETHER = ("rollout", "flow")


def is_raw(state: State) -> bool:
    """Whether the page shows the weights as they ran, token by token."""
    return state.reading == "raw" and state.words == "off"


def together(state: State) -> bool:
    """Whether the reading takes a layer's heads together."""
    return state.reading in _TOGETHER


def head_name(state: State) -> str:
    """What is shown of the layer: "head 4", or all heads together."""
    return "all heads together" if together(state) else f"head {state.head}"


def head(state: State) -> int:
    """Which head of the reading is on the screen: of one that takes heads together, the only one."""
    return 0 if together(state) else state.head


def take_head(chosen: int) -> None:
    """Keep a head that was chosen in a picture; one that stands for all heads is no choice."""
    if st.session_state["reading"] not in _TOGETHER:
        st.session_state["head"] = chosen


def show_picker() -> None:
    """The picker, beside those of layer and head."""
    st.selectbox(
        "Reading",
        list(LABELS),
        format_func=lambda name: LABELS[name],
        key="reading",
        width=150,
        persist_state="session",
    )
