"""A box for a text that a model reads or is to say."""

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.parts import open_trace as opening

__all__ = ["text_box"]


def text_box(label: str, key: str, placeholder: str | None = None) -> None:
    """The box; what is typed closes an open trace, since it is to be run.

    Args:
        label: what it is called.
        key: under which the state holds its text.
        placeholder: what stands in it while it is empty.
    """
    st.text_area(
        label,
        key=key,
        height=68,
        max_chars=SETTINGS.longest_input,
        placeholder=placeholder,
        on_change=opening.close,
        persist_state="session",
    )
