"""The Class page's URL; its code is in `attention_viz/ui/pages/class_/`."""

import streamlit as st

from attention_viz.ui.pages.class_.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Class", layout="wide")
with arranged("class_"):
    show_page(PAGE)
