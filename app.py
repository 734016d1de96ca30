"""Explore: the app's first page. Start it with `make run`."""

import streamlit as st

from attention_viz.ui.pages.explore.page import show_page
from attention_viz.ui.parts.layout import arranged

st.set_page_config(page_title="attention_viz · Explore", layout="wide")
with arranged("explore"):
    show_page()
