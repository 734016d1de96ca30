"""Cross-attention: the entry point of the page in `attention_viz/ui/pages/cross/`."""

import streamlit as st

from attention_viz.ui.pages.cross.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Cross-attention", layout="wide")
with arranged("cross"):
    show_page(PAGE)
