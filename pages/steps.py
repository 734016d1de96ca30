"""Step by step: every intermediate number of one head."""

import streamlit as st

from attention_viz.ui.layout import arranged
from attention_viz.ui.step_by_step import show_page

st.set_page_config(page_title="attention_viz · Step by step", layout="wide")
with arranged():
    show_page()
