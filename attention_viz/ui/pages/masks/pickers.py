"""The Masks page's pickers: mask, numbers, place and batch sentence."""

from collections.abc import Sequence

import streamlit as st

from attention_viz.serving import permissions as allowed
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.kinds import number_words
from attention_viz.ui.pages.masks.choice import BATCHED, MASK_CHOICES, MASKS, ROWS, MaskChoice, window_words
from attention_viz.ui.parts.notices import show_link_limit
from attention_viz.ui.selection import Selection

__all__ = ["is_batched", "pick_mask", "pick_numbers", "show_batch"]

# What a picker says where a mask acts in all layers or heads.
_ALL = "all"


def is_batched(selection: Selection) -> bool:
    """Return whether two sentences share a batch, which rules out a sentence pair."""
    part = selection.part(MASK_CHOICES)
    return part.pending.get("mask", part.value.mask) in BATCHED


def pick_mask(state: State) -> None:
    """Draw the mask's picker; its pictures below also pick."""
    _settle(state)
    widgets.show(
        st.selectbox,
        "Mask",
        of=MASK_CHOICES,
        name="mask",
        options=list(MASKS),
        width=116,
        label_visibility="collapsed",
    )


def pick_numbers(state: State) -> None:
    """Draw the pickers of the mask's number and place."""
    choice = visit.chosen(MASK_CHOICES)
    if choice.mask == "window":
        widgets.show(st.number_input, "Window", of=MASK_CHOICES, name="window", step=1)
        st.caption(window_words(choice.window, looks_back=state.facts.continues_text))
    if choice.mask == "prefix":
        widgets.show(st.number_input, "Prefix", of=MASK_CHOICES, name="prefix", step=1)
    if choice.mask != "none":
        with st.container(key="mask-where", horizontal=True):
            _where("in_layer", "Blocks in", _of(len(state.layers), "layer"), state.layers)
            _where("in_head", "Blocks for", _of(state.head_count, "head"), range(state.head_count))


def show_batch() -> None:
    """Draw the batch's other sentence and row picker, on their own line."""
    with st.container(key="mask-batch", horizontal=True, vertical_alignment="top"):
        widgets.show(
            st.text_area,
            "Second sentence",
            of=MASK_CHOICES,
            name="batch",
            height=68,
            width=380,
            placeholder="The other sentence of the batch",
            label_visibility="collapsed",
            max_chars=SETTINGS.longest_input,
        )
        show_link_limit(visit.chosen(MASK_CHOICES).batch)
        widgets.show(
            st.segmented_control,
            "Shown",
            of=MASK_CHOICES,
            name="row",
            options=ROWS,
            required=True,
            label_visibility="collapsed",
        )


def _settle(state: State) -> None:
    asking, before = visit.is_unread(MASK_CHOICES), visit.chosen(MASK_CHOICES)
    # A decoder never looks ahead: to forbid it that would show nothing.
    decoder = tuple(state.facts.heads) == ("decoder",)
    visit.settle(MASK_CHOICES, state, default=MaskChoice("window") if decoder else None)
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
            visit.fill(MASK_CHOICES, (notice,))


def _where(name: str, label: str, meaning: str, numbers: Sequence[int]) -> None:
    with st.container(width=120, gap=None):
        widgets.show(
            st.selectbox, label, of=MASK_CHOICES, name=name, options=[_ALL, *numbers], format_func=_number_label
        )
        st.caption(meaning)


def _number_label(number: int | str) -> str:
    return f"only {number}" if isinstance(number, int) else _ALL


def _of(count: int, what: str) -> str:
    return f"of the {count} {what}s" if count > 1 else f"of the only {what}"
