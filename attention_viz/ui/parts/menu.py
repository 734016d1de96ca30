"""Our own menu, whose links carry the sentence along."""

import streamlit as st

from attention_viz.ui import widgets
from attention_viz.ui.controls import examples, pickers
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.texts import follow_texts
from attention_viz.ui.parts.themes import follow_theme
from attention_viz.ui.presenting.button import show_button

__all__ = ["PAGES", "show_header"]


# The app's pages by what they are called; each file's name is its address. One line a page.
PAGES = {
    "Explore": "app.py",
    "Step by step": "pages/steps.py",
    "Masks": "pages/masks.py",
    "Heads": "pages/heads.py",
    "Cross-attention": "pages/cross.py",
    "Compare": "pages/compare.py",
    "Why": "pages/why.py",
    "Learn": "pages/learn.py",
}


def show_header() -> None:
    """Draw one line: name, pages, examples, trace upload and slides."""
    carried = pickers.address()
    with st.container(key="header", horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("#### attention_viz", width="content")
        with st.container(key="menu", horizontal=True, gap="small"):
            for label, page in PAGES.items():
                st.page_link(page, label=label, query_params=carried)
        # A new key closes the popover once it has done its work.
        with st.popover("Examples", key=widgets.fresh("examples")):
            examples.show_examples()
        with st.popover("Open a trace", key=f"open-{opening.count()}"):
            opening.offer()
        show_button()
        follow_theme()
        follow_texts()
