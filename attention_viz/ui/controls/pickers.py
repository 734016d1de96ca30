"""The row of sentence, model, layer and head."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.trace.kind import InputKind
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import Positions, State, write_address
from attention_viz.ui.address.kinds import WholeNumber
from attention_viz.ui.controls import model as model_choice
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls import wording as wording_controls
from attention_viz.ui.controls.fold import READ, show_chips, show_fold
from attention_viz.ui.controls.thing import (
    end_unless_shown,
    end_without_softmax,
    is_shown_on,
    reads,
    show_thing,
    show_why_alone,
    why_alone_of,
)
from attention_viz.ui.controls.wording import text_box
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.notices import hold_notices, show_notices
from attention_viz.ui.selection import SHARED, Filled, Group, PageOpened

# The line's height in pixels, before the page's style has arrived.
_ROW = 48
_setting = functools.partial(widgets.show, of=SHARED)


@dataclass(frozen=True)
class ControlRow:
    """The shared row's slots.

    Attributes:
        bar: for exports and badge.
        options: the end of "Options".
        fold: a phone line's, if any.
        own: the page's own, if any.
    """

    state: State
    bar: DeltaGenerator
    options: DeltaGenerator
    fold: DeltaGenerator | None = None
    own: DeltaGenerator | None = None


def begin(*own: Group[Any], example: State | None = None) -> None:
    """Read the URL at first and after Back or Forward; `example` is the default for its own model."""
    now = visit.here()
    asked, now.asked = now.asked, {}
    visit.send(PageOpened(st.query_params.to_dict(), own, example, visit.went_through_history(), asked))


def choose(
    page: str,
    stream: str | None = None,
    *,
    leave_out: Collection[str] = (),
    with_readings: bool = False,
    mixers: bool = False,
    beside: Callable[[State], DeltaGenerator | None] | None = None,
    other_text: Callable[[], None] | None = None,
    folded: str = "Sentence, model, layer and head",
) -> ControlRow:
    """Draw sentence, model, layer, head and "Options"; end a page unfit for the model's input."""
    asked, kind = wording_controls.asks_target(visit.shared()), reads(visit.shared())
    why_alone = why_alone_of(visit.shared())
    # The height holds until the page's style has arrived.
    with st.container(key="frame", height=_ROW, border=False):
        unused = (*leave_out, *(() if with_readings else READ))
        show_fold(what=folded, leave_out=unused)
        with st.container(key="pickers", horizontal=True, vertical_alignment="top", gap="small"):
            with st.container(key="texts"):
                if kind.has_text:
                    text_box("Sentence", "text", labelled=False)
                else:
                    show_thing(visit.shared(), kind)
            if kind == InputKind.BESIDE:
                with st.container(key="beside"):
                    show_thing(visit.shared(), kind)
            elif why_alone:
                with st.container(key="beside"):
                    show_why_alone(why_alone)
            if other_text is not None and kind == InputKind.TEXT:
                with st.container(key="other-text"):
                    other_text()
            model_choice.pick_model()
            places = st.container(key="places", horizontal=True)
            # Exports and the badge.
            bar = st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small")
        hold_notices()
    chips = st.empty()
    with st.container():
        model_choice.show_source()
        current = model_choice.prepare(visit.shared(), asked=not visit.here().selection.head_is_free)
    if (wording_controls.asks_target(current), reads(current), why_alone_of(current)) != (asked, kind, why_alone):
        # The model was loaded only now, and takes other inputs.
        visit.run_again()
    wording_controls.settle_stream(current, stream, mixers=mixers)
    with places:
        own = beside if is_shown_on(page, kind) else None
        options, inside = _show_places(
            visit.shared(), stream, leave_out, own, readings_too=with_readings, mixers=mixers
        )
    show_chips(chips, visit.shared(), unused)
    end_unless_shown(page, visit.shared(), kind)
    if not mixers:
        end_without_softmax(page, visit.shared())
    return ControlRow(_current_with_notices(), bar, options, own=inside)


def _show_places(
    state: State,
    stream: str | None,
    leave_out: Collection[str],
    beside: Callable[[State], DeltaGenerator | None] | None,
    *,
    readings_too: bool,
    mixers: bool,
) -> tuple[DeltaGenerator, DeltaGenerator | None]:
    """Return the end of "Options" and the page's slot."""
    if stream is None:
        wording_controls.pick_stream(state, mixers=mixers)
    _pick("layer", _layers(state), called="layer")
    heads, called = range(_head_count(visit.shared())), _head_or_channel(visit.shared())
    together = readings_too and readings.together(state)
    _pick("head", heads, called=called, together=together)
    inside = None if beside is None else beside(visit.shared())
    with st.popover("Options", key="options"):
        st.caption(model_choice.described(state))
        wording_controls.show_wording(state, leave_out)
        if readings_too:
            readings.show_picker()
            wording_controls.show_whole_words()
        if state.own and opening.opened() is None:
            _own_settings()
        return st.container(), inside


def _current_with_notices() -> State:
    state = visit.shared()
    show_notices(visit.notices(SHARED))
    return state


def sentence() -> ControlRow:
    """Draw the row without models."""
    with st.container(key="frame", height=_ROW, border=False):
        fold = st.container(key="fold-place")
        with st.container(key="pickers", horizontal=True, vertical_alignment="top", gap="small"):
            with st.container(key="texts"):
                text_box("Sentence", "text", labelled=False)
            own = st.container(key="places", horizontal=True)
        hold_notices()
    show_notices(visit.notices(SHARED))
    return ControlRow(visit.shared(), own, own, fold)


def switch(label: str, options: Mapping[str, str], of: Group[Any], name: str, key: str = "") -> None:
    """Draw a row of exclusive buttons."""
    look: dict[str, Any] = {"required": True, "label_visibility": "collapsed"}
    widgets.show(st.segmented_control, label, of=of, name=name, key=key, options=options, **look)


def address() -> dict[str, str]:
    """Return the URL parameters for another page."""
    return write_address(visit.shared())


def _pick(name: str, numbers: Sequence[int], *, called: str, together: bool = False) -> None:
    # Another model, another layer or another trace may have fewer.
    if (within := WholeNumber().within(getattr(visit.shared(), name), numbers, 0)) != getattr(visit.shared(), name):
        visit.send(Filled(SHARED, {name: within}, stays=name in visit.here().selection.chosen))
    if together:
        st.selectbox(
            name.capitalize(),
            [f"All {name}s"],
            key=f"all-{name}s",
            width=widgets.fitting(f"All {name}s"),
            disabled=True,
            label_visibility="collapsed",
        )
        return
    widgets.show(
        st.selectbox,
        called.capitalize(),
        of=SHARED,
        name=name,
        options={number: f"{called.capitalize()} {number}" for number in numbers},
        width=widgets.fitting(f"{called.capitalize()} {numbers[-1] if numbers else 0}"),
        label_visibility="collapsed",
    )


def _layers(state: State) -> Sequence[int]:
    run = opening.opened()
    return state.layers if run is None else run.trace.layer_numbers(run.stream(state.stream))


def _head_count(state: State) -> int:
    run = opening.opened()
    return state.head_count if run is None else run.trace.head_count(state.layer, run.stream(state.stream))


def _head_or_channel(state: State) -> str:
    run = opening.opened()
    stream = state.stream or next(iter(state.facts.streams), "")
    if run is None:
        return "channel" if (stream, state.layer) in state.facts.channels else "head"
    layers = run.trace.mixers.get(run.stream(state.stream), ())
    return layers[0].mixer.per if layers else "head"


def _own_settings() -> None:
    with st.container(key="own"):
        width, heads = st.columns(2)
        seed, positions = st.columns(2)
    _setting(width.number_input, "Width (d_model)", 1, 512, name="d_model", help="How many numbers each vector has.")
    _setting(heads.number_input, "Heads", 1, 16, name="heads", help="Each gets an equal part of the width.")
    _setting(seed.number_input, "Seed", 0, 9999, name="seed", help="Chooses the random numbers.")
    widgets.show(
        positions.selectbox,
        "Positions",
        of=SHARED,
        name="positions",
        options=get_args(Positions),
        help="Whether each word gets a position vector.",
    )
