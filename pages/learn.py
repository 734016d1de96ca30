"""Learn: the address of the page that lies in `attention_viz/ui/pages/learn/`."""

import streamlit as st

from attention_viz.ui.pages.learn.page import show_page
from attention_viz.ui.parts.layout import arranged

st.set_page_config(page_title="attention_viz · Learn", layout="wide")
with arranged("learn"):
    show_page()
