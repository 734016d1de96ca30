"""The Heads page's box of further texts, under "Options"."""

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts.notices import show_link_limit

__all__ = ["MOST_TEXTS", "pick_texts", "split_texts"]

# Fewer than the app keeps traces, so that a click doesn't run them all again.
MOST_TEXTS = 20


def split_texts(typed: str) -> list[str]:
    """Split typed texts by line, skipping empty lines."""
    return [line.strip() for line in typed.splitlines() if line.strip()]


def pick_texts() -> None:
    """Where they are typed."""
    # Its widget comes before the page knows what its other parameters may be.
    visit.settle(HEADS_CHOICES, only={"texts"})
    widgets.show(
        st.text_area,
        "More texts",
        of=HEADS_CHOICES,
        name="texts",
        height=120,
        max_chars=SETTINGS.longest_input,
        placeholder="One text a line",
        help=f"{MOST_TEXTS} at most. Roles and numbers are then the mean over the sentence and these texts, and the "
        "search by words goes over all of them. Patterns are the sentence's.",
    )
    show_link_limit(visit.chosen(HEADS_CHOICES).texts, "them")
