"""Cross-attention: what is said, and which words of the source each step looks at."""

import streamlit as st

from attention_viz.ui.cross_page import show_page
from attention_viz.ui.layout import arranged

st.set_page_config(page_title="attention_viz · Cross-attention", layout="wide")
with arranged():
    show_page()
