"""The Compare page's own pickers: what is compared, and what the second side is."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving import permissions as allowed
from attention_viz.serving.facts import nature
from attention_viz.serving.runs import load_model
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.pickers import went_through_history
from attention_viz.ui.pages.compare.choice import (
    KINDS,
    STEPS,
    TRAINED,
    CompareChoice,
    counts,
    models,
    read_choice,
    within,
)
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.notices import tell_notices

__all__ = ["PREFIX", "choose_kind", "first_state", "show_pickers", "take_head", "take_trained", "unseen"]

# Before the names of this page's widgets, so that they stay apart from those that all pages share.
PREFIX = "compare-"

_NAMES = tuple(field.name for field in fields(CompareChoice))


def first_state() -> State | None:
    """What the page opens on where its address asks for moments of training and names no model."""
    return TRAINED if st.query_params.get("what") == "snapshots" else None


def unseen() -> bool:
    """Whether this is a visitor's first run of this page."""
    return f"{PREFIX}first" not in st.session_state


def choose_kind(state: State) -> CompareChoice:
    """What the pickers say, from the address at the first run of this page and after Back and Forward.

    Args:
        state: what is chosen of the first side.
    """
    first = unseen()
    if first or went_through_history():
        parameters = st.query_params.to_dict()
        choice, notices = read_choice(parameters, state)
        for name in _NAMES:
            if first or name in parameters or name == "what":
                st.session_state[PREFIX + name] = getattr(choice, name)
        st.session_state[f"{PREFIX}first"], st.session_state[f"{PREFIX}notices"] = _held(), notices
    held = _held()
    if held.other_model not in models(state):
        st.session_state[f"{PREFIX}other_model"] = CompareChoice.other_model
    choice = within(_held(), state, opening.opened())
    for name in ("other_layer", "other_head"):
        st.session_state[PREFIX + name] = getattr(choice, name)
    return choice


def show_pickers(state: State) -> CompareChoice:
    """What is compared, and what belongs to it, on one line.

    Returns:
        The choice as the pickers now hold it.
    """
    with st.container(key="compare-pickers", horizontal=True, vertical_alignment="top"):
        _select("Compare", "what", list(KINDS), KINDS.__getitem__, 260)
        what = st.session_state[f"{PREFIX}what"]
        if what == "sentences":
            _second_sentence()
        if what == "models":
            _select("Second model", "other_model", list(models(state)), allowed.shown, 230)
        if what in ("models", "heads"):
            _second_head(state)
        if what == "snapshots":
            st.select_slider("Training step", STEPS, key=f"{PREFIX}step", width=420, persist_state="session")
            _select("Compared with step", "other_step", list(STEPS), str, 170)
    if _held() == st.session_state[f"{PREFIX}first"]:
        tell_notices(st.session_state[f"{PREFIX}notices"])
    return _held()


def take_head(choice: CompareChoice, cell: tuple[int, int]) -> None:
    """A head chosen in the picture of all heads: the second side's, where that has one of its own."""
    layer, head = cell
    if choice.what not in ("models", "heads"):
        st.session_state["layer"] = layer
        readings.take_head(head)
        return
    st.session_state[f"{PREFIX}other_layer"] = layer
    if not readings.together(replace(TRAINED, reading=st.session_state["reading"])):
        st.session_state[f"{PREFIX}other_head"] = head


def take_trained() -> None:
    """Show the model whose training was kept, on a text that shows it."""
    opening.close()
    for name in ("model", "text", "layer", "head", "stream"):
        st.session_state[name] = getattr(TRAINED, name)


def _second_head(state: State) -> None:
    model = st.session_state[f"{PREFIX}other_model"] if st.session_state[f"{PREFIX}what"] == "models" else state.model
    if not nature(model).heads:
        # How many heads it has is known once it is loaded; why it can't be is told where it would be drawn.
        with contextlib.suppress(AttentionVizError), st.spinner(f"Loading {allowed.shown(model)} …"):
            load_model(model)
    if not nature(model).heads:
        return
    for place, (name, label) in enumerate((("other_layer", "Second layer"), ("other_head", "Second head"))):
        # A picker before may have changed how many there are.
        choice = within(_held(), state, opening.opened())
        st.session_state[PREFIX + name] = getattr(choice, name)
        _select(label, name, range(counts(choice, state, opening.opened())[place]), str, 130)


def _second_sentence() -> None:
    with st.container(key="compare-text", gap=None, width=560):
        st.text_area(
            "Second sentence",
            key=f"{PREFIX}other",
            height=68,
            max_chars=SETTINGS.longest_input,
            persist_state="session",
        )
    if len(st.session_state[f"{PREFIX}other"]) > SETTINGS.longest_link:
        st.caption("Too long for a link, which leaves it out")


def _select(label: str, name: str, options: Sequence[Any], called: Callable[[Any], str], width: int) -> None:
    st.selectbox(label, options, format_func=called, key=PREFIX + name, width=width, persist_state="session")


def _held() -> CompareChoice:
    """What the widgets hold now; what has no widget at the moment keeps its last value."""
    return CompareChoice(**{name: st.session_state.get(PREFIX + name, getattr(CompareChoice, name)) for name in _NAMES})
