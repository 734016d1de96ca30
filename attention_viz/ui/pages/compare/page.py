"""The Compare page's pickers and slots."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.serving import permissions as allowed
from attention_viz.serving.models import facts_of
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.uploads import names_of, shows_of, title_of
from attention_viz.trace.kind import InputKind
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameters
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.edits_choice import CHANGES_OR_NONE
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.controls.thing import ask_another, samples_of
from attention_viz.ui.pages.compare.choice import (
    COMPARE_CHOICES,
    KINDS,
    PAIRED,
    SECOND,
    STEPS,
    TRAINED,
    CompareChoice,
    beside,
    contrast,
    kinds,
    models,
    numbers,
    other_sample,
)
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import PicturePlace, load_in_place
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import show_link_limit
from attention_viz.ui.parts.selection import take_head as take_shared_head
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import SHARED, Group, Selection

# Each figure's height, in pixels.
HEIGHT = 430
# Each text is compared by itself, as it was typed.
_LEFT_OUT = ("second", "more")


def choose_kind() -> None:
    """Apply the URL's kind of comparison and the first side's defaults."""
    state = replace(visit.shared(), second="", more=0)
    default = replace(CompareChoice(), other=contrast(state), other_picture=other_sample(state))
    choice = visit.settle(COMPARE_CHOICES, state, default=default)
    chosen = visit.here().selection.part(COMPARE_CHOICES).chosen
    second = beside(state)
    if choice.what == "models" and chosen.isdisjoint(SECOND) and second:
        visit.fill(COMPARE_CHOICES, **second)


def _settle_second(state: State) -> None:
    """Fit the second side to the settled model, except the sentence, whose box is drawn by then."""
    visit.settle(COMPARE_CHOICES, state, only=[one.name for one in parameters(CompareChoice) if one.name != "other"])


def other_text() -> None:
    """Draw the second sentence's box."""
    widgets.show(
        st.text_area,
        "Second sentence",
        of=COMPARE_CHOICES,
        name="other",
        height=68,
        max_chars=SETTINGS.longest_input,
        label_visibility="collapsed",
    )


def show_pickers(state: State) -> DeltaGenerator:
    """Draw the pickers; return the slot behind the comparison's button."""
    choice = visit.chosen(COMPARE_CHOICES)
    pictures = opening.opened() is None and state.facts.reads.medium == InputKind.PICTURE
    called = {**KINDS, "sentences": "two images"} if pictures else KINDS
    words = called[choice.what]
    with st.popover(words[0].upper() + words[1:], key="compare-what-with", width="content"):
        offered = kinds(choice, state, opening.opened())
        _select("Compare", "what", offered, called.__getitem__)
        if choice.what == "sentences" and pictures:
            _second_picture(choice)
        if pictures and (count := len(names_of(state.shown))) > 1:
            st.caption(f"Compare reads one image per side: the first of your {count}.")
        if choice.what == "models":
            _select("Second model", "other_model", list(models(state)), allowed.display_name)
        if choice.what in ("models", "heads"):
            _second_head(state)
        if choice.what in ("sentences", "models"):
            _select("Pair", "align", list(PAIRED), PAIRED.__getitem__)
        return st.container()


def _second_picture(choice: CompareChoice) -> None:
    names = samples_of(visit.shared(), InputKind.PICTURE)
    names += [choice.other_picture] * (choice.other_picture not in names)
    _select(
        "Second image",
        "other_picture",
        names,
        lambda name: shows_of(name) or title_of(name),
    )
    ask_another(
        "Upload second image",
        InputKind.PICTURE,
        choice.other_picture,
        lambda name: visit.pick(COMPARE_CHOICES, other_picture=name),
    )


def _show_moments() -> None:
    first, second = st.columns([3, 1])
    with first:
        widgets.show(st.select_slider, "Checkpoint", of=COMPARE_CHOICES, name="moment", options=STEPS)
    with second:
        _select("Second checkpoint", "other_moment", list(STEPS), str)


def _show_other_limit() -> None:
    # If the first sentence is too long, the page already says so.
    if visit.chosen(COMPARE_CHOICES).what == "sentences" and fits_link(visit.shared().text):
        show_link_limit(visit.chosen(COMPARE_CHOICES).other)


def load_second(state: State) -> None:
    """Load a second model of unknown head count, then rerun."""
    model = _second_model(state)
    if facts_of(model).heads:
        return
    place = st.empty()
    with contextlib.suppress(AttentionVizError):
        load_in_place(model, place)
    place.empty()
    if facts_of(model).heads:
        visit.run_again()


def take_head(choice: CompareChoice, cell: tuple[int, int]) -> None:
    """Choose a head in the grid: the second side's if it has its own."""
    layer, head = cell
    if choice.what not in ("models", "heads"):
        take_shared_head(layer, head)
        return
    visit.pick(COMPARE_CHOICES, other_layer=layer)
    if not readings.together(visit.shared()):
        visit.pick(COMPARE_CHOICES, other_head=head)


def _take_trained() -> None:
    names = ("model", "text", "layer", "head", "stream")
    visit.pick(SHARED, **{name: getattr(TRAINED, name) for name in names})


def _second_model(state: State) -> str:
    choice = visit.chosen(COMPARE_CHOICES)
    return choice.other_model if choice.what == "models" else state.model


def _second_head(state: State) -> None:
    if not facts_of(_second_model(state)).heads:
        return
    for place, (name, label) in enumerate((("other_layer", "Second layer"), ("other_head", "Second head"))):
        # An earlier picker may have changed their number.
        choice = visit.settle(COMPARE_CHOICES, state, only=("other_model", "other_layer", "other_head"))
        _select(label, name, numbers(choice, state, opening.opened())[place], str)


def _select(label: str, name: str, options: Sequence[Any], called: Callable[[Any], str]) -> None:
    widgets.show(st.selectbox, label, of=COMPARE_CHOICES, name=name, options=options, format_func=called)


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
        mixers=True,
        beside=_show_own,
        other_text=other_text if what == "sentences" else None,
    )


def _show_own(chosen: State) -> DeltaGenerator:
    alone = replace(chosen, second="", more=0)
    _settle_second(alone)
    return show_pickers(alone)


def _controls(state: State, _row: ControlRow) -> None:
    if visit.chosen(COMPARE_CHOICES).what == "models":
        load_second(state)
    _show_other_limit()


def _written(selection: Selection) -> tuple[State, tuple[Group[Any], ...]]:
    changes = (CHANGES_OR_NONE,) if selection.of(COMPARE_CHOICES).what == "edit" else ()
    return selection.shared, (COMPARE_CHOICES, *changes)


def _unfit(state: State) -> Callable[[], object] | None:
    trained = visit.chosen(COMPARE_CHOICES).what == "snapshots"
    fits = not trained or (state.model == TRAINED.model and opening.opened() is None)
    return None if fits else functools.partial(_offer_trained, state)


def _offer_trained(state: State) -> None:
    what = "a trace from a file can't be run again" if opening.opened() is not None else f"{state.model} has none"
    st.info(
        plain(
            f"Training checkpoints ship only with {TRAINED.model}, a toy decoder that learns to continue repeated "
            f"patterns; {what}. Use the browser’s Back button to return to your sentence."
        )
    )
    st.button(f"Show {TRAINED.model}", on_click=_take_trained)


def _layout(_state: State, row: ControlRow) -> Slots:
    assert row.own is not None
    named = {"controls": row.own, "changes": st.container(), "notes": st.container()}
    if visit.chosen(COMPARE_CHOICES).what == "snapshots":
        _show_moments()
    # Both sides' places while they run, and for what is wrong with them.
    with st.container(key="compare-sides", gap=None):
        one, other = st.empty(), st.empty()
    named |= {"one": one, "other": other, "rows": st.container(key="compare-view"), "next": st.container()}
    named["below"] = st.container()
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
