"""The Why page before anything heavy is there: header, pickers, and a place for each part that follows."""

from dataclasses import replace

import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.choice import ADDRESS, WHY_CHOICES, WhyChoice
from attention_viz.ui.pages.why.places import HEIGHT, Places
from attention_viz.ui.pages.why.stories import offer_stories
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import AskedOf, show_header
from attention_viz.ui.parts.notices import show_notices

__all__ = ["show_page"]


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS)
    show_header()
    row = pickers.choose("Why", leave_out=("more",), folded="Sentence, model, layer and head, what is asked and how")
    # A head is silenced in what was typed, not in what the model went on with.
    state = replace(row.state, more=0)
    # A model that chooses no words has scores alone.
    pair = not state.facts.predicts
    visit.settle(WHY_CHOICES, state, default=WhyChoice("pair") if pair else None)
    asked_of = visit.memory(AskedOf)
    number, asked_of.why = asked_of.why, {}
    if number:
        visit.pick(WHY_CHOICES, **number)
    show_notices(visit.notices(WHY_CHOICES))
    with st.container(key="why-asked", horizontal=True, vertical_alignment="center", gap="small"):
        asked = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
        ranked = st.container(key="why-order", width="content")
        offer_stories()
        running = st.empty()
    with st.container(key="why-put-from", horizontal=True, vertical_alignment="center", gap="small"):
        other, told = st.empty(), st.empty()
    notes = st.container()
    with st.container(key="stage", height=HEIGHT, border=False):
        picture = st.empty()
        board = st.container()
    beneath = st.container(key="why-beneath")
    with importing("why", state, picture, HEIGHT):
        from attention_viz.ui.pages.why.body import show_body
    show_body(
        row.state, state, Places(row.bar, asked, ranked, running, other, told, notes, picture, board, beneath), HEIGHT
    )
