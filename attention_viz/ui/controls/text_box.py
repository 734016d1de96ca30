"""A box for a source or target text."""

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import widgets
from attention_viz.ui.selection import SHARED

__all__ = ["text_box"]


def text_box(label: str, name: str, placeholder: str | None = None, *, labelled: bool = True) -> None:
    """Draw the box; typing closes an open trace.

    Args:
        labelled: whether the label is visible, always read by screen readers.
    """
    widgets.show(
        st.text_area,
        label,
        of=SHARED,
        name=name,
        height=68,
        max_chars=SETTINGS.longest_input,
        placeholder=placeholder,
        label_visibility="visible" if labelled else "collapsed",
    )
    if name == "text":
        # In sight while the box holds another text than what is drawn: leaving the box for it runs the text.
        st.button("Run", key="run", type="primary")
