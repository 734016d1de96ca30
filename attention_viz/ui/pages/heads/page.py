"""The Heads page's URL choices, controls and slots."""

import functools
from collections.abc import Hashable
from dataclasses import dataclass

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits_choice import CHANGES
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import PicturePlace, is_at_hand
from attention_viz.ui.parts.notices import show_link_limit
from attention_viz.ui.runner.page import Page, Slots

# Fewer than the app keeps traces, so that a click doesn't run them all again.
MOST_TEXTS = 20
# The atlas and the parts below it, in pixels.
_HEIGHT = 720


@dataclass
class _AtlasOf:
    of: Hashable = None


def _may_stay(state: State) -> bool:
    """Return whether the last numbers on the screen are for these texts."""
    return is_at_hand(state) and visit.memory(_AtlasOf).of == _what(state)


def remember(state: State) -> None:
    """Remember the last measured atlas's texts."""
    visit.memory(_AtlasOf).of = _what(state)


def _what(state: State) -> Hashable:
    return state.request, visit.chosen(HEADS_CHOICES).texts, opening.opened() is not None


def split_texts(typed: str) -> list[str]:
    """Split typed texts by line, skipping empty lines."""
    return [line.strip() for line in typed.splitlines() if line.strip()]


def _pick_texts() -> None:
    # Its widget is drawn before the page knows the other parameters' options.
    visit.settle(HEADS_CHOICES, only={"texts"})
    widgets.show(
        st.text_area,
        "More texts",
        of=HEADS_CHOICES,
        name="texts",
        height=120,
        max_chars=SETTINGS.longest_input,
        placeholder="One text per line",
        help=f"Up to {MOST_TEXTS}. Roles and numbers become means over the sentence and these texts, and the word "
        "search covers all of them. Patterns stay those of the sentence.",
    )
    show_link_limit(visit.chosen(HEADS_CHOICES).texts, "them")


def _controls(_state: State, row: ControlRow) -> None:
    with row.options:
        _pick_texts()


def _layout(state: State, _row: ControlRow) -> Slots:
    notes, picture = st.container(), PicturePlace.of(_may_stay(state))
    return Slots(picture, _HEIGHT, {"notes": notes})


PAGE = Page(
    "Heads",
    "heads",
    row=functools.partial(pickers.choose, "Heads", with_readings=True, mixers=True),
    layout=_layout,
    groups=(HEADS_CHOICES, CHANGES),
    controls=_controls,
    address_follows_run=True,
)
