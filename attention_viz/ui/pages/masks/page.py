"""The Masks page before anything heavy is there: header, pickers, and a place for each part that follows."""

from dataclasses import replace

import streamlit as st

from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.wording import WORDING
from attention_viz.ui.pages.masks.choice import ADDRESS, MASK_CHOICES, MaskChoice
from attention_viz.ui.pages.masks.pickers import begin_masks, choose_mask
from attention_viz.ui.pages.masks.places import HEIGHT, Places
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.menu import show_header

__all__ = ["show_page"]


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS)
    batched = begin_masks()
    show_header()
    row = pickers.choose(leave_out=WORDING if batched else ("more",))
    chosen = row.state
    # A pair and a batch are two things, and a mask is put on what was typed, not on what the model went on with.
    chosen = replace(chosen, second="" if batched else chosen.second)
    state = replace(chosen, more=0)
    choice, line = (MaskChoice("none"), st.empty()) if opening.opened() else choose_mask(state)
    pickers.keep(chosen, MASK_CHOICES)
    notes, pictures = st.container(), st.empty()
    with importing("masks", state, pictures, HEIGHT):
        from attention_viz.ui.pages.masks.body import show_body
    show_body(choice, chosen, Places(line, row.bar, notes, pictures))
