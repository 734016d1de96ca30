"""Step by step: the entry point of the page in `attention_viz/ui/pages/steps/`."""

import streamlit as st

from attention_viz.ui.pages.steps.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Step by step", layout="wide")
with arranged("steps"):
    show_page(PAGE)
