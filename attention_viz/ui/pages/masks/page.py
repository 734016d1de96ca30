"""The Masks page before anything heavy is there: header, pickers, and a place for each part that follows."""

from dataclasses import replace

import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.wording import WORDING
from attention_viz.ui.pages.masks.choice import ADDRESS, MASK_CHOICES, MaskChoice
from attention_viz.ui.pages.masks.pickers import begin_masks, pick_mask, pick_numbers, show_batch
from attention_viz.ui.pages.masks.places import HEIGHT, Places
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.parts.notices import show_notices

__all__ = ["show_page"]


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS)
    batched = begin_masks()
    show_header()
    with_mask = opening.opened() is None
    row = pickers.choose(
        "Masks",
        leave_out=WORDING if batched else ("more",),
        beside=pick_mask if with_mask else None,
    )
    chosen = row.state
    # A pair and a batch are two things, and a mask is put on what was typed, not on what the model went on with.
    chosen = replace(chosen, second="" if batched else chosen.second)
    state = replace(chosen, more=0)
    if with_mask:
        with row.options:
            pick_numbers(state)
    else:
        visit.settle(MASK_CHOICES, state)
    choice = visit.chosen(MASK_CHOICES) if with_mask else MaskChoice("none", weights=visit.chosen(MASK_CHOICES).weights)
    if with_mask and choice.batched:
        show_batch()
    show_notices(visit.notices(MASK_CHOICES))
    pickers.keep(chosen, MASK_CHOICES)
    notes = st.container()
    with st.container(key="stage", height=HEIGHT, border=False):
        pictures = st.empty()
        board = st.container()
    with importing("masks", state, pictures, HEIGHT):
        from attention_viz.ui.pages.masks.body import show_body
    show_body(choice, chosen, Places(row.bar, notes, pictures, board))
