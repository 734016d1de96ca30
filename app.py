"""Explore: the app's first page. Start it with `make run`."""

import streamlit as st

from attention_viz.ui.pages.explore.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Explore", layout="wide")
with arranged("explore"):
    show_page(PAGE)
