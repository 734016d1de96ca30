"""The Explore page before anything heavy is there: header, controls, and a place for each part that follows."""

import importlib

import streamlit as st

from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.explore.choice import ADDRESS, settle
from attention_viz.ui.pages.explore.picture import run_meanwhile, show_recorded
from attention_viz.ui.pages.explore.places import HEIGHT, hold_places
from attention_viz.ui.parts.explorer import HeadPlace
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    head = HeadPlace()
    pickers.begin(*ADDRESS)
    show_header()
    row = pickers.choose("Explore", with_readings=True)
    state = row.state
    choice = settle(state)
    pickers.keep(state, *ADDRESS)
    places = hold_places(state, row.bar, head)
    if show_recorded(state, places):
        with importing("explore", state, None, HEIGHT):
            importlib.import_module("attention_viz.ui.pages.explore.body")
        run_meanwhile(state)
        st.rerun()
    with importing("explore", state, places.explorer.to_fill(), HEIGHT):
        from attention_viz.ui.pages.explore.body import show_body
    show_body(state, choice, places)
