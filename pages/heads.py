"""Heads: all heads of a model at once, by what they do."""

import streamlit as st

from attention_viz.ui.pages.heads.page import show_page
from attention_viz.ui.parts.layout import arranged

st.set_page_config(page_title="attention_viz · Heads", layout="wide")
with arranged("heads"):
    show_page()
