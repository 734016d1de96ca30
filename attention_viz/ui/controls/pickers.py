"""Sentence, model, layer and head: what a page shows, chosen on one line and kept in the address."""

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.address import Positions, State, write_address
from attention_viz.ui.address.kinds import nearest
from attention_viz.ui.address.session import Choices, went_through_history
from attention_viz.ui.address.shared import SHARED, begin_page
from attention_viz.ui.controls import model as model_choice
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls import target as two_texts
from attention_viz.ui.controls import wording as wording_controls
from attention_viz.ui.controls.text_box import text_box
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.notices import show_notices

__all__ = ["address", "begin", "choose", "keep", "sentence", "switch"]


def begin(*own: Choices[Any], example: State | None = None) -> None:
    """Take the choices from the address at the first run and after Back or Forward; else the widgets hold them.

    Args:
        own: what the page keeps in the address beside what all pages share.
        example: what the page opens on that has an example of its own, where the address names no other model.
    """
    if SHARED.unseen or went_through_history():
        # An address never means a file that was opened meanwhile.
        opening.close()
    begin_page(own, example)


def choose(stream: str | None = None, *, leave_out: Collection[str] = (), with_readings: bool = False) -> State:
    """The sentence and the pickers on one line.

    Args:
        stream: the only one that the page is about; by default a model with several has a picker for it.
        leave_out: what of `wording_controls.WORDING` the page has no use for.
        with_readings: whether the page shows weights as weights, so that they can be read otherwise.
    """
    asked = two_texts.asks_target(SHARED.current())
    # The height holds until the page's style has arrived.
    with st.container(key="pickers", height=108, border=False):
        sentence, *target, model, pickers = st.columns(_widths(asked, stream, with_readings), vertical_alignment="top")
    known = bool(SHARED.current().facts.heads)
    beside = _show_texts(sentence, target)
    if known:
        wording_controls.fill_beside(beside, SHARED.current(), leave_out)
    with model:
        model_choice.pick_model()
    with st.container():
        model_choice.show_source()
        current = model_choice.prepare(SHARED.current())
    if two_texts.asks_target(current) != asked:
        # It was loaded only now, and turned out to ask for more.
        st.rerun()
    two_texts.settle_stream(current, stream)
    current = SHARED.current()
    if not known:
        wording_controls.fill_beside(beside, current, leave_out)
    model.caption(model_choice.described(current))
    _show_places(pickers, current, with_readings)
    several = stream is None and len(two_texts.streams(current)) > 1
    # Where there is a picker for the stream, it needs the width.
    with model if several else pickers.container(horizontal=True, key="pickers-below"):
        wording_controls.show_switches(current, leave_out, words=with_readings)
    if several:
        with pickers:
            two_texts.pick_stream(current)
    if current.own and opening.opened() is None:
        _own_settings()
    return _current_with_notices()


def _show_texts(sentence: DeltaGenerator, target: Sequence[DeltaGenerator]) -> DeltaGenerator:
    """The boxes for the sentence and, where there is a column for it, the target; the place beside the sentence's."""
    with sentence.container(key="texts", horizontal=True):
        text_box("Sentence", "text")
        beside = wording_controls.places()
    for place in target:
        with place:
            text_box("Target", "target", "Empty: the model's own answer")
    return beside


def _show_places(pickers: DeltaGenerator, state: State, with_readings: bool) -> None:
    """The pickers for the layer, the head and, where weights can be read otherwise, the reading."""
    width = 80 if with_readings else 94
    with pickers.container(horizontal=True):
        _pick("layer", _layer_count(state), width)
        _pick("head", _head_count(SHARED.current()), width, together=with_readings and readings.together(state))
        if with_readings:
            readings.show_picker()


def _current_with_notices() -> State:
    """What is chosen, once what the address asked for in vain has been said."""
    state = SHARED.current()
    show_notices(SHARED.notices())
    return state


def sentence() -> State:
    """The sentence alone, for a page that names its models itself: what else was chosen stays as it is."""
    text_box("Sentence", "text")
    return _current_with_notices()


def switch(label: str, options: Mapping[str, str], key: str) -> None:
    """A row of buttons, one of which is pressed.

    Args:
        label: what is chosen, for those who can't see it.
        options: by value, what a button says.
        key: of the widget.
    """
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        key=key,
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )


def keep(state: State, *own: Choices[Any]) -> None:
    """Write what is shown into the address: the state that all pages share, and what this page adds to it.

    Args:
        state: from `choose`.
        own: what the page keeps in the address beside that.
    """
    # A link can't carry a file: while one is open, the address stays what it was.
    if opening.opened() is None:
        parts = [write_address(state), *(one.address() for one in own)]
        st.query_params.from_dict({name: text for part in parts for name, text in part.items()})


def address() -> dict[str, str]:
    """The parameters that carry what is chosen to another page."""
    return write_address(SHARED.current())


def _widths(target: bool, stream: str | None, with_readings: bool) -> list[float]:
    """Of the columns: the sentence, the target where there is one, the model, and what is picked of it."""
    if with_readings:
        return [2.6, 1.95, 2.65, 3.15] if target else [5, 2.33, 3.07]
    if not target:
        return [6, 2.4, 2]
    return [3.25, 2.35, 2.8, 2] if stream is not None else [2.5, 2.0, 2.7, 3.2]


def _pick(name: str, count: int, width: int, *, together: bool = False) -> None:
    # Another model, another layer or another trace may have fewer. Set, it stays while its picker is away.
    # Said each time: the browser holds a choice by its label, and another model may call the same layer otherwise.
    SHARED.set_afresh(**{name: nearest(getattr(SHARED.current(), name), range(count), 0)})
    if together:
        st.selectbox(name.capitalize(), ["all"], key=f"all-{name}s", width=width, disabled=True)
        return
    names = model_choice.layer_names(st.session_state["model"]) if name == "layer" else ()
    called = functools.partial(_called, names)
    st.selectbox(name.capitalize(), range(count), key=name, format_func=called, width=width, persist_state="session")


def _called(names: Sequence[str], number: int) -> str:
    """A number in a picker, by its name where it has one."""
    return names[number] if number < len(names) else str(number)


def _layer_count(state: State) -> int:
    drawn = opening.opened()
    return state.layer_count if drawn is None else drawn.trace.layer_count(drawn.stream(state.stream))


def _head_count(state: State) -> int:
    drawn = opening.opened()
    return state.head_count if drawn is None else drawn.trace.head_count(state.layer, drawn.stream(state.stream))


def _own_settings() -> None:
    """What can be changed about our own module."""
    with st.container(key="own"):
        width, heads, seed, positions = st.columns(4)
    width.number_input(
        "Width (d_model)", 1, 512, key="d_model", help="How many numbers stand for a word.", persist_state="session"
    )
    heads.number_input(
        "Heads", 1, 16, key="heads", help="They share the width evenly: it is a multiple.", persist_state="session"
    )
    seed.number_input("Seed", 0, 9999, key="seed", help="Another seed, other random numbers.", persist_state="session")
    positions.selectbox(
        "Positions",
        get_args(Positions),
        key="positions",
        help="Whether each word's place is added to it.",
        persist_state="session",
    )
