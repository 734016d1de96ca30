"""Masks: who may look at whom, changed while the model runs."""

import streamlit as st

from attention_viz.ui.layout import arranged
from attention_viz.ui.mask_page import show_page

st.set_page_config(page_title="attention_viz · Masks", layout="wide")
with arranged():
    show_page()
