"""The Compare page before anything heavy is there: header, pickers, and a place for each part that follows."""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits_choice import CHANGES_OR_NONE
from attention_viz.ui.pages.compare.choice import ADDRESS, COMPARE_CHOICES, TRAINED
from attention_viz.ui.pages.compare.pickers import (
    choose_kind,
    first_state,
    load_second,
    other_text,
    settle_second,
    show_choice_notices,
    show_moments,
    show_pickers,
    take_trained,
)
from attention_viz.ui.pages.compare.places import HEIGHT, hold_places
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.selection import SHARED

__all__ = ["show_page"]

# Each text stands for itself here, as it was typed.
_LEFT_OUT = ("second", "more")


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(*ADDRESS, example=first_state())
    # The second sentence comes with the model, before the header hears which texts the page is drawn from.
    what = choose_kind(replace(visit.chosen(SHARED), second="", more=0)).what
    show_header()
    behind: list[DeltaGenerator] = []

    def show_own(chosen: State) -> None:
        """The page's own pickers, of the model that the row has settled on."""
        alone = replace(chosen, second="", more=0)
        settle_second(alone)
        behind.append(show_pickers(alone))

    row = pickers.choose(
        "Compare",
        leave_out=_LEFT_OUT,
        with_readings=True,
        beside=show_own,
        other_text=other_text if what == "sentences" else None,
    )
    chosen = row.state
    state, choice = replace(chosen, second="", more=0), visit.chosen(COMPARE_CHOICES)
    if choice.what == "models":
        load_second(state)
    show_choice_notices()
    pickers.keep(chosen, COMPARE_CHOICES, *((CHANGES_OR_NONE,) if choice.what == "edit" else ()))
    trained = choice.what == "snapshots"
    if trained and (state.model != TRAINED.model or opening.opened() is not None):
        _offer_trained(state)
        return
    places = hold_places(behind[0], row.bar, moments=show_moments if trained else None)
    with importing("compare", state, places.first, HEIGHT):
        from attention_viz.ui.pages.compare.body import show_body
    show_body(choice, chosen, places)


def _offer_trained(state: State) -> None:
    """Say why there is nothing to see, and how to see something."""
    what = (
        "a trace from a file can't be run again"
        if opening.opened() is not None
        else f"of {state.model} none came along"
    )
    st.info(
        plain(
            f"Moments of training came along with {TRAINED.model} alone, a toy decoder whose heads learn to go on with "
            f"what they have read; {what}. Your sentence comes back with the browser’s Back."
        )
    )
    st.button(f"Show {TRAINED.model} with “{TRAINED.text}”", on_click=take_trained)
