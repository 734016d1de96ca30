"""Texts on a page are run by Enter; what is drawn of another text than the box holds is marked."""

from importlib import resources

import streamlit as st
from streamlit.components import v2 as components

__all__ = ["follow_texts"]

# The boxes, by their keys, whose text is run as a whole.
_BOXES = ("text", "second", "target", "batch", "compare-other")

# Registered once, when the module is imported: a component's name stands for its code from then on.
_JS = resources.files("attention_viz").joinpath("explorer", "static", "page", "texts.js").read_text("utf-8")
_follower = components.component("attention_viz_texts", js=_JS)


def follow_texts() -> None:
    """Have Enter run what is typed, and mark the page while it shows another text."""
    texts = {key: st.session_state[key] for key in _BOXES if isinstance(st.session_state.get(key), str)}
    _follower(key="texts-follower", data={"texts": texts})
