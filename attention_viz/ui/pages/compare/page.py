"""The Compare page: its controls and its slots."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits_choice import CHANGES_OR_NONE
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, TRAINED
from attention_viz.ui.pages.compare.pickers import (
    choose_kind,
    load_second,
    other_text,
    settle_second,
    show_moments,
    show_other_limit,
    show_pickers,
    take_trained,
)
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group, Selection

__all__ = ["HEIGHT", "PAGE"]

# Of each of the pictures, in pixels.
HEIGHT = 430
# Each text is compared by itself, as it was typed.
_LEFT_OUT = ("second", "more")


def _example(address: Mapping[str, str]) -> State | None:
    return TRAINED if address.get("what") == "snapshots" else None


def _state(selection: Selection) -> State:
    return replace(selection.shared, second="", more=0)


def _row() -> ControlRow:
    what = visit.chosen(COMPARE_CHOICES).what
    return pickers.choose(
        "Compare",
        leave_out=_LEFT_OUT,
        with_readings=True,
        beside=_show_own,
        other_text=other_text if what == "sentences" else None,
    )


def _show_own(chosen: State) -> DeltaGenerator:
    alone = replace(chosen, second="", more=0)
    settle_second(alone)
    return show_pickers(alone)


def _controls(state: State, _row: ControlRow) -> None:
    if visit.chosen(COMPARE_CHOICES).what == "models":
        load_second(state)
    show_other_limit()


def _written(selection: Selection) -> tuple[State, tuple[Group[Any], ...]]:
    changes = (CHANGES_OR_NONE,) if selection.of(COMPARE_CHOICES).what == "edit" else ()
    return selection.shared, (COMPARE_CHOICES, *changes)


def _unfit(state: State) -> Callable[[], object] | None:
    trained = visit.chosen(COMPARE_CHOICES).what == "snapshots"
    fits = not trained or (state.model == TRAINED.model and opening.opened() is None)
    return None if fits else functools.partial(_offer_trained, state)


def _offer_trained(state: State) -> None:
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


def _layout(_state: State, row: ControlRow) -> Slots:
    assert row.own is not None
    trained = visit.chosen(COMPARE_CHOICES).what == "snapshots"
    named = {"controls": row.own, "changes": st.container(), "notes": st.container()}
    named["claim"] = st.container(key="compare-claim")
    with st.container(key="compare-views"):
        columns = st.columns(4 if trained else 3)
        if trained:
            with columns[0]:
                show_moments()
                named["curve"] = st.empty()
        one, other, difference = (column.empty() for column in columns[-3:])
    named |= {"one": one, "other": other, "difference": difference, "below": st.container()}
    return Slots(PicturePlace(one, stays=False), HEIGHT, named)


PAGE = Page(
    "Compare",
    "compare",
    row=_row,
    layout=_layout,
    groups=(COMPARE_CHOICES, CHANGES_OR_NONE),
    example=_example,
    first=choose_kind,
    state=_state,
    controls=_controls,
    written=_written,
    unfit=_unfit,
    badges="several",
)
