"""The Masks page's own pickers: which mask, its numbers, where it acts, and the other sentence of a batch."""

from collections.abc import Sequence

import streamlit as st

from attention_viz.serving import permissions as allowed
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.address.kinds import number_words
from attention_viz.ui.pages.masks.choice import BATCHED, MASK_CHOICES, MASKS, ROWS, MaskChoice, window_words
from attention_viz.ui.parts.notices import show_link_limit

__all__ = ["begin_masks", "pick_mask", "pick_numbers", "show_batch"]

# What a picker says where a mask acts in all layers or heads.
_ALL = "all"


def begin_masks() -> bool:
    """Whether two sentences stand in one batch: then no second one is read together with the first."""
    mask = MASK_CHOICES.asked("mask") or MASK_CHOICES.current().mask
    return mask in BATCHED


def pick_mask(state: State) -> None:
    """The mask, on the line of the other pickers; the same can be chosen by its picture below."""
    _settle(state)
    st.selectbox(
        "Mask",
        list(MASKS),
        key=MASK_CHOICES.key("mask"),
        width=116,
        label_visibility="collapsed",
        persist_state="session",
    )


def pick_numbers(state: State) -> None:
    """What belongs to the chosen mask: its number, and where it acts."""
    mask = MASK_CHOICES.current().mask
    if mask == "window":
        st.number_input("Window", key="window", step=1, persist_state="session")
        st.caption(window_words(MASK_CHOICES.current().window, looks_back=state.facts.continues_text))
    if mask == "prefix":
        st.number_input("Prefix", key="prefix", step=1, persist_state="session")
    if mask != "none":
        with st.container(key="mask-where", horizontal=True):
            _where("in_layer", "Blocks in", _of(len(state.layers), "layer"), state.layers)
            _where("in_head", "Blocks for", _of(state.head_count, "head"), range(state.head_count))


def show_batch() -> None:
    """The other sentence of the batch, and which row is shown; a line of its own."""
    with st.container(key="mask-batch", horizontal=True, vertical_alignment="top"):
        st.text_area(
            "Second sentence",
            key="batch",
            height=68,
            width=380,
            placeholder="The other sentence of the batch",
            label_visibility="collapsed",
            max_chars=SETTINGS.longest_input,
            persist_state="session",
        )
        show_link_limit(MASK_CHOICES.current().batch)
        st.segmented_control(
            "Shown", ROWS, key="row", required=True, label_visibility="collapsed", persist_state="session"
        )


def _settle(state: State) -> None:
    """Answer the address; of a layer or head that another model doesn't have, say so."""
    asking, before = MASK_CHOICES.asking, MASK_CHOICES.current()
    # A decoder never looks ahead: to forbid it that would show nothing.
    decoder = tuple(state.facts.heads) == ("decoder",)
    MASK_CHOICES.settle(state, default=MaskChoice("window") if decoder else None)
    if asking:
        return
    for what, number, there in (
        ("layer", before.in_layer, state.layers),
        ("head", before.in_head, range(state.head_count)),
    ):
        if number is not None and number not in there:
            model = allowed.display_name(state.model)
            notice = (
                f"The mask was for {what} {number} only; {model} has {what}s {number_words(there)}: it now acts in all."
            )
            MASK_CHOICES.adjust([notice])


def _where(name: str, label: str, meaning: str, numbers: Sequence[int]) -> None:
    with st.container(width=120, gap=None):
        st.selectbox(
            label,
            [_ALL, *numbers],
            format_func=lambda number: f"only {number}" if isinstance(number, int) else _ALL,
            key=MASK_CHOICES.key(name),
            persist_state="session",
        )
        st.caption(meaning)


def _of(count: int, what: str) -> str:
    return f"of the {count} {what}s" if count > 1 else f"of the only {what}"
