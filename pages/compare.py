"""Compare: the entry point of the page in `attention_viz/ui/pages/compare/`."""

import streamlit as st

from attention_viz.ui.pages.compare.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Compare", layout="wide")
with arranged("compare"):
    show_page(PAGE)
