"""All heads of the second side, by distance from their counterparts."""

import weakref
from weakref import WeakKeyDictionary

import streamlit as st
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import own_example
from attention_viz.ui.controls.plot import add_targets, show_to_click
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.page import take_head
from attention_viz.ui.pages.compare.sides import ShownSide, compared
from attention_viz.ui.pages.compare.words import heads_words
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.selection import SHARED, Filled, Selection, update
from attention_viz.views import compared_heads
from attention_viz.views.figures.grids import is_turned
from attention_viz.views.style.axes import lower

_HEIGHT = 340

# Cached by pair of runs: every rerun of the page needs the same numbers.
_known: WeakKeyDictionary[Trace, tuple[weakref.ref[Trace], object, Float[Tensor, "layer head"]]] = WeakKeyDictionary()
# Up to this many tokens all heads are compared before any is drawn.
_LONGEST = 128


def show_heads(choice: CompareChoice, comparison: Comparison) -> None:
    """Draw the clickable grid and name its extremes."""
    one, other = comparison.one, comparison.other
    # Two models' heads, or two chosen heads, have no counterparts: compare all with the first side's head.
    fixed = (one.layer, one.head) if choice.what in ("models", "heads") else None
    st.markdown(f"##### {_title(choice, fixed)}")
    try:
        apart = _apart_of(comparison, fixed)
    except TraceError as error:
        st.info(as_sentence(str(error)))
        return
    chosen = (other.layer, other.head)
    numbers = other.trace.layer_numbers(other.stream)
    words = heads_words(apart, chosen, numbers)
    figure = compared_heads(one.trace, other.trace, apart, other.stream, chosen=chosen, theme=theme_name())
    lower(figure, _HEIGHT)
    layers, heads = apart.shape
    cells = [(row, head) for row in range(layers) for head in range(heads)]
    add_targets(figure, cells, turned=is_turned(layers, heads), size=18)
    show_to_click(figure, "compare-heads", words, lambda cell: take_head(choice, (numbers[cell[0]], cell[1])))
    st.caption(plain(f"{words} Click a head to choose it."))


def _title(choice: CompareChoice, fixed: tuple[int, int] | None) -> str:
    if fixed is None:
        return "Which heads differ?"
    return f"Distance to first head{' (second model)' * (choice.what == 'models')}"


def _apart_of(comparison: Comparison, fixed: tuple[int, int] | None = None) -> Float[Tensor, "layer head"]:
    """Return each second-run head's distance, in bits; NaN if none."""
    one, other = comparison.one, comparison.other
    asked = (one.stream, other.stream, fixed, comparison.align)
    known = _known.get(other.trace)
    if known is not None and known[0]() is one.trace and known[1] == asked:
        return known[2]
    streams = {"stream": one.stream, "other_stream": other.stream}
    found = divergences(one.trace, other.trace, **streams, head=fixed, align=comparison.align)
    _known[other.trace] = weakref.ref(one.trace), asked, found
    return found


def follow_difference(selection: Selection, choice: CompareChoice, first: ShownSide, second: ShownSide) -> Selection:
    """Select the head that differs most, unless one was chosen."""
    # A text already opened on another page keeps its head from there.
    if not _is_open(selection, first) or selection.found_for == selection.text:
        return selection
    try:
        apart = _apart_of(compared(choice, first, second))
    except AttentionVizError:
        return selection
    row, head = divmod(int(torch.nan_to_num(apart, nan=-1.0).argmax()), apart.shape[1])
    layer = second.run.trace.layer_numbers(second.stream)[row]
    if apart[row, head] <= 0 or (layer, head) == (selection.shared.layer, selection.shared.head):
        return selection
    return update(selection, Filled(SHARED, {"layer": layer, "head": head}))


def _is_open(selection: Selection, first: ShownSide) -> bool:
    """Return whether the head is still free; a model's example brings its own."""
    state = selection.shared
    short = len(first.run.trace.query_tokens(first.stream)) <= _LONGEST
    free = selection.head_is_free and state.query is None
    return short and free and is_raw(state) and state.text != own_example(state.model)
