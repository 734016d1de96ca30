"""Learn: the course, one idea a screen, with every number from the reader's own sentence."""

import streamlit as st

from attention_viz.ui.layout import arranged
from attention_viz.ui.learn_page import show_page

st.set_page_config(page_title="attention_viz · Learn", layout="wide")
with arranged():
    show_page()
