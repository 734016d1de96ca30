"""A box for a text that a model reads or is to say."""

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.parts import open_trace as opening

__all__ = ["text_box"]


def text_box(label: str, key: str, placeholder: str | None = None, *, labelled: bool = True) -> None:
    """The box; what is typed closes an open trace, since it is to be run.

    Args:
        label: what it is called.
        key: under which the state holds its text.
        placeholder: what stands in it while it is empty.
        labelled: whether the label is in sight; it is always there for those who can't see.
    """
    st.text_area(
        label,
        key=key,
        height=68,
        max_chars=SETTINGS.longest_input,
        placeholder=placeholder,
        on_change=_take,
        args=(key,),
        label_visibility="visible" if labelled else "collapsed",
        persist_state="session",
    )
    if key == "text":
        # In sight while the box holds another text than what is drawn: leaving the box for it runs the text.
        st.button("Run", key="run", type="primary")


def _take(key: str) -> None:
    """Run what was typed: a line break at its end is nobody's wish, and would reach the address."""
    st.session_state[key] = st.session_state[key].rstrip("\r\n")
    opening.close()
