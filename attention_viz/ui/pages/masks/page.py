"""The Masks page's URL choices, pickers and slots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.serving import permissions as allowed
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.address.cells import DRAWN, from_code
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber, number_words
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.controls.wording import WORDING
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.parts.notices import show_link_limit
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import SHARED, Group, Selection

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.edits.kinds.masks import Allow
    from attention_viz.trace.tokens import Tokens

# Each mask by its URL name: in a few words, and in a sentence.
MASKS = {
    "none": ("as the model is", "Nothing is added to the model's own mask: both sides show the same run."),
    "causal": ("no looking ahead", "Each token may attend to itself and to earlier tokens."),
    "padding": ("padding hidden", "No token may attend to the padding tokens that fill the shorter row."),
    "both": ("padding and causal", "No token may attend to later tokens or to padding."),
    "window": ("nearby tokens only", "Each token may attend to tokens less than the window's width away."),
    "prefix": ("the start open to all", "Every token may attend to the first tokens; the rest of the mask is causal."),
    "drawn": ("by hand", "The cells that you drew."),
}

# Which weights the matrix shows.
SHOWN = ("before", "after", "difference")

# The rows of a batch of two sentences; of two of the same length, the first counts as the shorter.
_ROWS = ("shorter", "longer")

# The masks of two sentences in one batch.
_BATCHED = ("padding", "both")
# The option for a mask in all layers or heads.
_ALL = "all"
# The height of the matrix and its side panel, in pixels.
_HEIGHT = 660


def _is(*masks: str) -> Callable[["MaskChoice", object], bool]:
    return lambda choice, _: choice.mask in masks


def _is_any(choice: "MaskChoice", _: object) -> bool:
    return choice.mask != "none"


@dataclass(frozen=True)
class MaskChoice:
    """The Masks page's URL choices."""

    mask: str = parameter("causal", OneOf(tuple(MASKS)), "the mask")
    window: int = parameter(2, WholeNumber(range(10_000)), "the window's width", applies=_is("window"))
    prefix: int = parameter(2, WholeNumber(range(10_000)), "how many tokens are open to all", applies=_is("prefix"))
    cells: str = parameter("", DRAWN, "the drawn cells", applies=_is("drawn"), brief=True)
    batch: str = parameter(
        "A boat drifted by",
        AnyText(),
        "the other sentence, for `padding` and `both`",
        applies=_is(*_BATCHED),
        older=Older("second", lambda address: address.get("mask") in _BATCHED),
    )
    row: str = parameter("shorter", OneOf(_ROWS), "the shown row of the batch", applies=_is(*_BATCHED))
    in_layer: int | None = parameter(
        None, WholeNumber(lambda _, state: state.layers, nothing="all"), "the only layer", applies=_is_any
    )
    in_head: int | None = parameter(
        None,
        WholeNumber(lambda _, state: range(state.head_count), nothing="all"),
        "the only head",
        applies=_is_any,
    )

    weights: str = parameter("difference", OneOf(SHOWN), "the weights in the matrix", brief=True)

    @property
    def batched(self) -> bool:
        """Return whether one batch has two sentences."""
        return self.mask in _BATCHED


def window_words(window: int, *, looks_back: bool = False) -> str:
    """Describe a window's reach for each token."""
    around = max(0, window - 1)
    if around == 0:
        return "nothing but itself"
    return f"itself and the {'one' if around == 1 else around} {'before it' if looks_back else 'on each side'}"


MASK_CHOICES = Group(MaskChoice(), "", "masks")


def edits(choice: MaskChoice, tokens: "Tokens", stream: str | None = None) -> "tuple[Allow, ...]":
    """Return the mask as a model edit; empty for "none"."""
    from attention_viz.edits.kinds.masks import Allow

    allowed = added_cells(choice, tokens)
    return () if allowed is None else (Allow(allowed, choice.in_layer, choice.in_head, stream),)


def added_cells(choice: MaskChoice, tokens: "Tokens") -> "Tensor | None":
    """Return the mask's cells, (query, key), True for open; None for "none"."""
    import torch

    from attention_viz.explorer.mask_payload import mask_cells

    count = len(tokens)
    drawn = torch.from_numpy(~from_code(choice.cells, count)) if choice.mask == "drawn" else None
    return mask_cells(choice.mask, count, choice.window, choice.prefix, padding=tokens.padding, drawn=drawn)


def _is_batched(selection: Selection) -> bool:
    """Return whether two sentences share a batch, which rules out a sentence pair."""
    part = selection.part(MASK_CHOICES)
    return part.pending.get("mask", part.value.mask) in _BATCHED


def _pick_mask(state: State) -> None:
    """Draw the mask's picker; its pictures below also pick."""
    _settle(state)
    width = widgets.fitting("padding")
    if takes_no_mask(state):
        # The choice stays for the other streams.
        st.selectbox("Mask", ["none"], key="no-mask", disabled=True, width=width, label_visibility="collapsed")
        return
    widgets.show(
        st.selectbox,
        "Mask",
        of=MASK_CHOICES,
        name="mask",
        options=list(MASKS),
        width=width,
        label_visibility="collapsed",
    )


def takes_no_mask(state: State) -> bool:
    """Return whether the stream's keys are other positions than its queries, which these masks don't fit."""
    return (state.stream or next(iter(state.facts.heads), None)) in CROSSING_STREAMS


def _pick_numbers(state: State) -> None:
    choice = visit.chosen(MASK_CHOICES)
    if choice.mask == "window":
        widgets.show(st.number_input, "Window", of=MASK_CHOICES, name="window", step=1)
        st.caption(window_words(choice.window, looks_back=state.facts.continues_text))
    if choice.mask == "prefix":
        widgets.show(st.number_input, "Prefix", of=MASK_CHOICES, name="prefix", step=1)
    if choice.mask != "none":
        with st.container(key="mask-where", horizontal=True):
            _where("in_layer", "Masked layers", _of(len(state.layers), "layer"), state.layers)
            _where("in_head", "Masked heads", _of(state.head_count, "head"), range(state.head_count))


def _show_batch() -> None:
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
            options=_ROWS,
            required=True,
            label_visibility="collapsed",
        )


def _settle(state: State) -> None:
    asking, before = visit.is_unread(MASK_CHOICES), visit.chosen(MASK_CHOICES)
    # A decoder is causal already, so a causal mask would show nothing.
    decoder = tuple(state.facts.heads) == ("decoder",) or state.stream == "decoder"
    default = MaskChoice("none") if takes_no_mask(state) else MaskChoice("window") if decoder else None
    now = visit.settle(MASK_CHOICES, state, default=default)
    if now.batched and state.facts.is_encoder_decoder and not takes_no_mask(state):
        visit.fill(MASK_CHOICES, (_one_text(state),), mask="none")
    if asking:
        return
    for what, number, there in (
        ("layer", before.in_layer, state.layers),
        ("head", before.in_head, range(state.head_count)),
    ):
        if number is not None and number not in there:
            model = allowed.display_name(state.model)
            there_are = f"{model} has {what}s {number_words(there)}"
            notice = f"The mask was for {what} {number} only; {there_are}. It now acts in all."
            visit.fill(MASK_CHOICES, (notice,))


def _one_text(state: State) -> str:
    return (
        f"Padding fills the shorter of two sentences, but {allowed.display_name(state.model)} reads one text at a "
        "time here. This is the run without a mask."
    )


def _where(name: str, label: str, meaning: str, numbers: Sequence[int]) -> None:
    with st.container(width=120, gap=None):
        widgets.show(
            st.selectbox,
            label,
            of=MASK_CHOICES,
            name=name,
            options={_ALL: _ALL, **{one: f"only {one}" for one in numbers}},
        )
        st.caption(meaning)


def _of(count: int, what: str) -> str:
    return f"of the {count} {what}s" if count > 1 else f"of the only {what}"


def _row() -> ControlRow:
    here = visit.here().selection
    if here.shared.stream == "cross" and _stream_is_free(here):
        # Explore opened on a finding there. A mask needs self-attention.
        visit.fill(SHARED, stream=None)
    leave_out = WORDING if _is_batched(here) else ("more",)
    return pickers.choose("Masks", leave_out=leave_out, mixers=True, beside=None if here.file else _pick_mask)


def _stream_is_free(here: Selection) -> bool:
    has_pair = here.shared.query is not None or here.shared.key is not None
    return here.head_is_free and "stream" not in here.chosen and not has_pair and not here.file


def _controls(state: State, row: ControlRow) -> None:
    here = visit.here().selection
    if here.file:
        visit.settle(MASK_CHOICES, state)
        return
    with row.options:
        _pick_numbers(state)
    if here.of(MASK_CHOICES).batched:
        _show_batch()


def mask_of(selection: Selection) -> MaskChoice:
    """Return the active mask; none on a file's trace, which can't be rerun."""
    choice = selection.of(MASK_CHOICES)
    return MaskChoice("none", weights=choice.weights) if selection.file else choice


def _state(selection: Selection) -> State:
    # A mask applies to the typed text, not to generated tokens.
    return replace(_written(selection)[0], more=0)


def _written(selection: Selection) -> tuple[State, tuple[Group[MaskChoice]]]:
    # A pair and a batch are two things.
    second = "" if _is_batched(selection) else selection.shared.second
    return replace(selection.shared, second=second), (MASK_CHOICES,)


def _layout(_state: State, _row: ControlRow) -> Slots:
    notes = st.container()
    with st.container(key="stage", height=_HEIGHT, border=False):
        picture, board = st.empty(), st.container()
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, {"notes": notes, "board": board, "below": st.container()})


PAGE = Page(
    "Masks",
    "masks",
    row=_row,
    layout=_layout,
    groups=(MASK_CHOICES,),
    state=_state,
    controls=_controls,
    written=_written,
)
