"""Masks: the address of the page that lies in `attention_viz/ui/pages/masks/`."""

import streamlit as st

from attention_viz.ui.pages.masks.page import show_page
from attention_viz.ui.parts.layout import arranged

st.set_page_config(page_title="attention_viz · Masks", layout="wide")
with arranged("masks"):
    show_page()
