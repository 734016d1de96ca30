"""The Compare page's own pickers: what is compared, and what the second side is."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving import permissions as allowed
from attention_viz.serving.facts import facts_of
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.address.shared import SHARED
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.pages.compare.choice import (
    COMPARE_CHOICES,
    KINDS,
    PAIRED,
    STEPS,
    TRAINED,
    CompareChoice,
    beside,
    counts,
    kinds,
    models,
)
from attention_viz.ui.pages.compare.contrast import contrast
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import load_in_place
from attention_viz.ui.parts.notices import show_link_limit, show_notices

__all__ = ["choose_kind", "first_state", "show_pickers", "take_head", "take_trained"]

# What the sentence is compared with until somebody types another, as this page last had it.
_CONTRAST = "compare-contrast"

# The first model that the second one was last chosen for.
_BESIDE = "compare-beside"


def first_state() -> State | None:
    """What the page opens on where its address asks for moments of training and names no model."""
    return TRAINED if st.query_params.get("what") == "snapshots" else None


def choose_kind(state: State) -> CompareChoice:
    """What is compared, from the address at the first run of this page and after Back and Forward.

    Args:
        state: what is chosen of the first side.
    """
    own, before = contrast(state), st.session_state.get(_CONTRAST, "")
    asked = any(COMPARE_CHOICES.asked(name) is not None for name in ("other_model", "other_layer", "other_head"))
    choice = COMPARE_CHOICES.settle(state, default=replace(CompareChoice(), other=own))
    if choice.other == before:  # brought by the model or the sentence of until now
        COMPARE_CHOICES.adjust(other=own)
    st.session_state[_CONTRAST] = own
    if choice.what == "models" and st.session_state.get(_BESIDE) != state.model:
        st.session_state[_BESIDE] = state.model
        if not asked:
            COMPARE_CHOICES.adjust(**beside(state))
    return COMPARE_CHOICES.current()


def show_pickers(state: State) -> CompareChoice:
    """What is compared, and what belongs to it, on one line.

    Returns:
        The choice as the pickers now hold it.
    """
    with st.container(key="compare-pickers", horizontal=True, vertical_alignment="top"):
        offered = kinds(COMPARE_CHOICES.current(), state, opening.opened())
        _select("Compare", "what", offered, KINDS.__getitem__, 260)
        what = COMPARE_CHOICES.current().what
        if what == "sentences":
            _second_sentence()
        if what == "models":
            _select("Second model", "other_model", list(models(state)), allowed.display_name, 230)
        if what in ("models", "heads"):
            _second_head(state)
        if what in ("sentences", "models"):
            _select("Pair", "align", list(PAIRED), PAIRED.__getitem__, 290)
        # Of another model no moments were kept: there is nothing to pick.
        if what == "snapshots" and state.model == TRAINED.model and opening.opened() is None:
            st.select_slider(
                "Training step", STEPS, key=COMPARE_CHOICES.key("moment"), width=420, persist_state="session"
            )
            _select("Compared with step", "other_moment", list(STEPS), str, 170)
    show_notices(COMPARE_CHOICES.notices())
    return COMPARE_CHOICES.current()


def take_head(choice: CompareChoice, cell: tuple[int, int]) -> None:
    """A head chosen in the picture of all heads: the second side's, where that has one of its own."""
    layer, head = cell
    if choice.what not in ("models", "heads"):
        st.session_state["layer"] = layer
        readings.take_head(head)
        return
    COMPARE_CHOICES.set(other_layer=layer)
    if not readings.together(SHARED.current()):
        COMPARE_CHOICES.set(other_head=head)


def take_trained() -> None:
    """Show the model whose training was kept, on a text that shows it."""
    opening.close()
    for name in ("model", "text", "layer", "head", "stream"):
        st.session_state[name] = getattr(TRAINED, name)


def _second_head(state: State) -> None:
    choice = COMPARE_CHOICES.current()
    model = choice.other_model if choice.what == "models" else state.model
    if not facts_of(model).heads:
        # How many heads it has is known once it is loaded; why it can't be is told where it would be drawn.
        place = st.empty()
        with contextlib.suppress(AttentionVizError):
            load_in_place(model, place)
        place.empty()
    if not facts_of(model).heads:
        return
    for place, (name, label) in enumerate((("other_layer", "Second layer"), ("other_head", "Second head"))):
        # A picker before may have changed how many there are.
        choice = COMPARE_CHOICES.settle(state, only=("other_model", "other_layer", "other_head"))
        _select(label, name, range(counts(choice, state, opening.opened())[place]), str, 130)


def _second_sentence() -> None:
    with st.container(key="compare-text", gap=None, width=560):
        st.text_area(
            "Second sentence",
            key=COMPARE_CHOICES.key("other"),
            height=68,
            max_chars=SETTINGS.longest_input,
            persist_state="session",
        )
    show_link_limit(COMPARE_CHOICES.current().other)


def _select(label: str, name: str, options: Sequence[Any], called: Callable[[Any], str], width: int) -> None:
    st.selectbox(
        label, options, format_func=called, key=COMPARE_CHOICES.key(name), width=width, persist_state="session"
    )
