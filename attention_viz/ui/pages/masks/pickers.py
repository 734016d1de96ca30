"""The Masks page's own pickers: which mask, its numbers, where it acts, and the cells of a drawing."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import ShapeError
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.controls.pen import strokes
from attention_viz.ui.controls.pickers import went_through_history
from attention_viz.ui.pages.masks.choice import (
    LONGEST_DRAWN,
    MASKS,
    ROWS,
    Cells,
    MaskChoice,
    from_code,
    read_choice,
    to_code,
)
from attention_viz.ui.parts.notices import tell_notices

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens

__all__ = ["begin_masks", "choose_mask", "show_drawing_board", "take_strokes"]

_NAMES = tuple(field.name for field in fields(MaskChoice))

# What a picker holds where a choice has None: to a picker None means that nothing was chosen yet.
_ALL = "all"


def begin_masks() -> bool:
    """See whether two sentences stand in one batch: then the address's second sentence is the batch's, not a pair's."""
    told = "mask-first" not in st.session_state or went_through_history()
    mask = st.query_params.get("mask") if told else st.session_state["mask"]
    batched = MaskChoice(mask or MaskChoice.mask).batched
    if batched and told:
        st.session_state["second"] = st.session_state["held"]["second"] = ""
    return batched


def choose_mask(state: State) -> tuple[MaskChoice, DeltaGenerator]:
    """The mask and what belongs to it, on one line; only what the chosen mask has a use for.

    Returns:
        The choice, and the line, on which there is room for a drawing board.
    """
    _begin(state)
    line = st.container(key="mask-pickers", horizontal=True, vertical_alignment="top")
    with line:
        st.selectbox("Mask", list(MASKS), format_func=_called, key="mask", width=230, persist_state="session")
        mask = st.session_state["mask"]
        if mask == "window":
            st.number_input("Window", key="window", step=1, width=150, persist_state="session")
        if mask == "prefix":
            st.number_input("Prefix", key="prefix", step=1, width=150, persist_state="session")
        if mask in ("padding", "both"):
            _second_sentence()
        if mask != "none":
            _where("in_layer", "Blocks in", _of(state.layer_count, "layer"), state.layer_count)
            _where("in_head", "Blocks for", _of(state.head_count, "head"), state.head_count)
    notices = st.session_state["mask-notices"]
    choice = _held()
    if choice == st.session_state["mask-first"]:
        tell_notices(notices)
    return choice, line


def show_drawing_board(tokens: "Tokens") -> None:
    """Whole rows and columns at once: who is looking, at whom, and what to do with the cells where they meet."""
    if len(tokens) > LONGEST_DRAWN:
        return
    names = [f"{position} {label}" for position, label in enumerate(tokens.labels)]
    with st.container(key="drawing-board", horizontal=True, vertical_alignment="bottom", width="content"):
        rows = _line("Who is looking", names, "everyone")
        columns = _line("Looked at", names, "everyone")
        for label, block in (("Block", True), ("Allow", False)):
            st.button(label, on_click=_paint, args=(rows, columns, len(tokens), block))
        st.button("Clear", on_click=_write, args=("",))


def take_strokes(count: int) -> None:
    """Cells that were touched in one stroke: blocked if any of them was open, else opened."""
    blocked = _drawn(count)
    for rows, columns in strokes(count):
        blocked[rows, columns] = not blocked[rows, columns].all()
    _keep(blocked)


def _begin(state: State) -> None:
    """Take the choices from the address at a visitor's first run of this page, and after Back or Forward."""
    first = "mask-first" not in st.session_state
    if first or went_through_history():
        parameters = st.query_params.to_dict()
        choice, notices = read_choice(parameters, state)
        # What an address leaves out stands for the default, or is of no use to its mask and may stay.
        told = {*parameters, "mask", "in_layer", "in_head", *(["cells"] if choice.mask == "drawn" else [])}
        if choice.batched and "second" in parameters:
            told.add("beside_text")
        for name in _NAMES:
            if first or name in told:
                value = getattr(choice, name)
                st.session_state[name] = _ALL if value is None else value
        st.session_state["mask-first"], st.session_state["mask-notices"] = _held(), notices
    for name, count in (("in_layer", state.layer_count), ("in_head", state.head_count)):
        # Another model may have fewer.
        held = st.session_state[name]
        if held != _ALL and held >= count:
            st.session_state[name] = _ALL
            what = name.removeprefix("in_")
            st.session_state["mask-notices"] = [
                f"The mask was for {what} {held} only; {state.model} has {count}, counted from 0: it now acts in all."
            ]
            st.session_state["mask-first"] = _held()


def _second_sentence() -> None:
    st.text_area(
        "Second sentence",
        key="beside_text",
        height=68,
        width=380,
        max_chars=SETTINGS.longest_input,
        persist_state="session",
    )
    if len(st.session_state["beside_text"]) > SETTINGS.longest_link:
        st.caption("Too long for a link, which leaves it out")
    st.segmented_control(
        "Shown",
        ROWS,
        key="row",
        required=True,
        persist_state="session",
    )


def _where(name: str, label: str, meaning: str, count: int) -> None:
    with st.container(width=110, gap=None):
        st.selectbox(
            label,
            [_ALL, *range(count)],
            format_func=lambda number: _ALL if number == _ALL else f"only {number}",
            key=name,
            persist_state="session",
        )
        st.caption(meaning)


def _of(count: int, what: str) -> str:
    return f"of the {count} {what}s" if count > 1 else f"of the only {what}"


def _line(label: str, names: Sequence[str], every: str) -> int | None:
    """A row or a column, by its token; None for all of them."""
    choice = st.selectbox(
        label,
        [_ALL, *range(len(names))],
        format_func=lambda position: every if position == _ALL else str(names[position]),
        key=f"board-{label}",
        width=130,
    )
    return choice if isinstance(choice, int) and choice < len(names) else None


def _paint(row: int | None, column: int | None, count: int, block: bool) -> None:
    blocked = _drawn(count)
    blocked[slice(None) if row is None else row, slice(None) if column is None else column] = block
    _keep(blocked)


def _drawn(count: int) -> Cells:
    """What is drawn so far; nothing where it was drawn for another length."""
    try:
        return from_code(st.session_state.get("cells", ""), count)
    except ShapeError:
        return numpy.zeros((count, count), dtype=bool)


def _keep(blocked: Cells) -> None:
    _write(to_code(blocked) if blocked.any() else "")


def _write(code: str) -> None:
    st.session_state["cells"] = code


def _held() -> MaskChoice:
    """What the widgets hold now; what has no widget at the moment keeps its last value."""
    first = MaskChoice()
    held: dict[str, Any] = {name: st.session_state.get(name, getattr(first, name)) for name in _NAMES}
    for name in ("in_layer", "in_head"):
        held[name] = None if held[name] in (None, _ALL) else held[name]
    return MaskChoice(**held)


def _called(mask: str) -> str:
    return f"{mask}: {MASKS[mask][0]}"
