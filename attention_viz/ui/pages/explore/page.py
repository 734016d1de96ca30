"""The Explore page: what it keeps in the URL, its controls and its slots."""

import functools

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import Row
from attention_viz.ui.pages.explore.choice import EXPLORE
from attention_viz.ui.pages.explore.picture import show_recorded
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import place_picture
from attention_viz.ui.parts.explorer import HeadPlace
from attention_viz.ui.runner.page import Page, Slots

__all__ = ["CANDIDATES_TITLE", "CANDIDATES_WIDTH", "PAGE", "goes_on_for_sure"]

# The explorer's height on a wide screen.
_HEIGHT = 600
# Of the panel with what comes next.
CANDIDATES_TITLE, CANDIDATES_WIDTH = "What comes next", 264
