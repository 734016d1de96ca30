"""The Masks page's own pickers: which mask, its numbers, where it acts, and the cells of a drawing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import ShapeError
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import LONGEST_DRAWN, Cells, from_code, to_code
from attention_viz.ui.address.kinds import nearest
from attention_viz.ui.controls.pen import strokes
from attention_viz.ui.pages.masks.choice import BATCHED, MASK_CHOICES, MASKS, ROWS, MaskChoice, window_words
from attention_viz.ui.parts.notices import show_link_limit, show_notices

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens

__all__ = ["begin_masks", "choose_mask", "show_drawing_board", "take_strokes"]


# What a picker says where a mask acts in all layers or heads, and a drawn line goes through all tokens.
_ALL = "all"


def begin_masks() -> bool:
    """Whether two sentences stand in one batch: then no second one is read together with the first."""
    mask = MASK_CHOICES.asked("mask") or MASK_CHOICES.current().mask
    return mask in BATCHED


def choose_mask(state: State) -> tuple[MaskChoice, DeltaGenerator]:
    """The mask and what belongs to it, on one line; only what the chosen mask has a use for.

    Returns:
        The choice, and the line, on which there is room for a drawing board.
    """
    _settle(state)
    line = st.container(key="mask-pickers", horizontal=True, vertical_alignment="top")
    with line:
        st.selectbox(
            "Mask", list(MASKS), format_func=_called, key=MASK_CHOICES.key("mask"), width=230, persist_state="session"
        )
        mask = MASK_CHOICES.current().mask
        if mask == "window":
            with st.container(width=150, gap=None):
                st.number_input("Window", key="window", step=1, persist_state="session")
                st.caption(window_words(MASK_CHOICES.current().window))
        if mask == "prefix":
            st.number_input("Prefix", key="prefix", step=1, width=150, persist_state="session")
        if mask in BATCHED:
            _second_sentence()
        if mask != "none":
            _where("in_layer", "Blocks in", _of(state.layer_count, "layer"), state.layer_count)
            _where("in_head", "Blocks for", _of(state.head_count, "head"), state.head_count)
    show_notices(MASK_CHOICES.notices())
    return MASK_CHOICES.current(), line


def show_drawing_board(tokens: "Tokens") -> None:
    """Whole rows and columns at once: who is looking, at whom, and what to do with the cells where they meet."""
    if len(tokens) > LONGEST_DRAWN:
        return
    names = [f"{position} {label}" for position, label in enumerate(tokens.written)]
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


def _settle(state: State) -> None:
    """Answer the address; of a layer or head that another model doesn't have, say so."""
    asking, before = MASK_CHOICES.asking, MASK_CHOICES.current()
    MASK_CHOICES.settle(state)
    if asking:
        return
    for what, number, count in (
        ("layer", before.in_layer, state.layer_count),
        ("head", before.in_head, state.head_count),
    ):
        if number is not None and number >= count:
            notice = (
                f"The mask was for {what} {number} only; {state.model} has {count}, counted from 0: it now acts in all."
            )
            MASK_CHOICES.adjust([notice])


def _second_sentence() -> None:
    st.text_area(
        "Second sentence",
        key="batch",
        height=68,
        width=380,
        max_chars=SETTINGS.longest_input,
        persist_state="session",
    )
    show_link_limit(MASK_CHOICES.current().batch)
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
            format_func=lambda number: f"only {number}" if isinstance(number, int) else _ALL,
            key=MASK_CHOICES.key(name),
            persist_state="session",
        )
        st.caption(meaning)


def _of(count: int, what: str) -> str:
    return f"of the {count} {what}s" if count > 1 else f"of the only {what}"


def _line(label: str, names: Sequence[str], every: str) -> int | None:
    """A row or a column, by its token; None for all of them."""
    key, options = f"board-{label}", [_ALL, *range(len(names))]
    # A label of a longer text is no place in this one.
    st.session_state[key] = nearest(st.session_state.get(key), options, _ALL)
    choice = st.selectbox(
        label,
        options,
        format_func=lambda position: str(names[position]) if isinstance(position, int) else every,
        key=key,
        width=130,
    )
    return choice if isinstance(choice, int) else None


def _paint(row: int | None, column: int | None, count: int, block: bool) -> None:
    blocked = _drawn(count)
    blocked[slice(None) if row is None else row, slice(None) if column is None else column] = block
    _keep(blocked)


def _drawn(count: int) -> Cells:
    """What is drawn so far; nothing where it was drawn for another length."""
    try:
        return from_code(MASK_CHOICES.current().cells, count)
    except ShapeError:
        return numpy.zeros((count, count), dtype=bool)


def _keep(blocked: Cells) -> None:
    _write(to_code(blocked) if blocked.any() else "")


def _write(code: str) -> None:
    MASK_CHOICES.set(cells=code)


def _called(mask: str) -> str:
    return f"{mask}: {MASKS[mask][0]}"
