"""The Masks page: its controls and its slots."""

from dataclasses import replace

import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.controls.wording import WORDING
from attention_viz.ui.pages.masks.choice import MASK_CHOICES, MaskChoice
from attention_viz.ui.pages.masks.pickers import is_batched, pick_mask, pick_numbers, show_batch
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group, Selection

__all__ = ["PAGE", "mask_of"]

# Of the matrix with what stands beside it, in pixels.
_HEIGHT = 660


def _row() -> ControlRow:
    here = visit.here().selection
    leave_out = WORDING if is_batched(here) else ("more",)
    return pickers.choose("Masks", leave_out=leave_out, beside=None if here.file else pick_mask)


def _controls(state: State, row: ControlRow) -> None:
    here = visit.here().selection
    if here.file:
        visit.settle(MASK_CHOICES, state)
        return
    with row.options:
        pick_numbers(state)
    if here.of(MASK_CHOICES).batched:
        show_batch()


def mask_of(selection: Selection) -> MaskChoice:
    """Return the active mask; none on a file's trace, which can't be rerun."""
    choice = selection.of(MASK_CHOICES)
    return MaskChoice("none", weights=choice.weights) if selection.file else choice


def _state(selection: Selection) -> State:
    # A mask is put on what was typed, not on what the model went on with.
    return replace(_written(selection)[0], more=0)


def _written(selection: Selection) -> tuple[State, tuple[Group[MaskChoice]]]:
    # A pair and a batch are two things.
    second = "" if is_batched(selection) else selection.shared.second
    return replace(selection.shared, second=second), (MASK_CHOICES,)


def _layout(_state: State, _row: ControlRow) -> Slots:
    notes = st.container()
    with st.container(key="stage", height=_HEIGHT, border=False):
        picture, board = st.empty(), st.container()
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, {"notes": notes, "board": board, "below": st.container()})


PAGE = Page(
    "Masks",
    "masks",
    row=_row,
    layout=_layout,
    groups=(MASK_CHOICES,),
    state=_state,
    controls=_controls,
    written=_written,
)
