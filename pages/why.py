"""Why: the entry point of the page in `attention_viz/ui/pages/why/`."""

import streamlit as st

from attention_viz.ui.pages.why.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Why", layout="wide")
with arranged("why"):
    show_page(PAGE)
