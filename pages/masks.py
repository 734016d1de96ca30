"""Masks: the entry point of the page in `attention_viz/ui/pages/masks/`."""

import streamlit as st

from attention_viz.ui.pages.masks.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · Masks", layout="wide")
with arranged("masks"):
    show_page(PAGE)
