"""How far all heads are apart, and the head that the page opens on."""

import weakref
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.errors import AttentionVizError
from attention_viz.trace.trace import Trace
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.sides import ShownSide, compared
from attention_viz.ui.selection import SHARED, Filled, Selection, update

_Apart = Float[Tensor, "layer head"]

# Cached by pair of runs: every rerun of the page needs the same numbers.
_known: WeakKeyDictionary[Trace, tuple[weakref.ref[Trace], object, _Apart]] = WeakKeyDictionary()
# Up to this many tokens all heads are compared before any is drawn.
_LONGEST = 512


def distances(choice: CompareChoice, comparison: Comparison) -> _Apart | AttentionVizError:
    """Return each head's distance in bits, or why there is none.

    Two models' heads, or two chosen heads, have no counterparts: all are compared with the first side's head.
    """
    one = comparison.one
    try:
        return _apart_of(comparison, (one.layer, one.head) if choice.what in ("models", "heads") else None)
    except AttentionVizError as error:
        return error


def _apart_of(comparison: Comparison, fixed: tuple[int, int] | None = None) -> _Apart:
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


def rows_of_heads(
    choice: CompareChoice, comparison: Comparison, query: int
) -> tuple[Float[Tensor, "head key"], Float[Tensor, "head key"]] | None:
    """Return one query's row in every pair of heads that the map has, on the common axes; NaN for a missing token.

    None if the query isn't in both texts, or a layer has no softmax.
    """
    one, other = comparison.one, comparison.other
    at = comparison.queries.one[query], comparison.queries.other[query]
    if at[0] is None or at[1] is None or one.mixes or other.mixes:
        return None
    second = _rows(other, at[1], comparison.keys.other)
    if choice.what in ("models", "heads"):
        return comparison.weights[query].expand_as(second), second
    return _rows(one, at[0], comparison.keys.one), second


def _rows(side: Side, query: int, keys: Sequence[int | None]) -> Float[Tensor, "head key"]:
    layers = side.trace.layer_numbers(side.stream)
    calls = (side.trace.attention(layer, side.stream).rows([query]) for layer in layers)
    rows = torch.cat([call.weights[:, 0].detach().cpu().double() for call in calls])
    found = torch.full((len(rows), len(keys)), torch.nan, dtype=torch.float64)
    here = [place for place, key in enumerate(keys) if key is not None]
    found[:, here] = rows[:, [key for key in keys if key is not None]]
    return found


def seeks_head(choice: CompareChoice, selection: Selection) -> bool:
    """Return whether two sentences wait for the head that differs most: no person or link chose one.

    Two images have nothing in common at one position, so they keep the head of the other pages.
    """
    state = selection.shared
    return (
        not state.shown
        and choice.what == "sentences"
        and selection.head_is_free
        and state.query is None
        and is_raw(state)
    )


def follow_difference(selection: Selection, choice: CompareChoice, first: ShownSide, second: ShownSide) -> Selection:
    """Select the head that differs most; of a long text, keep the chosen one."""
    if len(first.run.trace.query_tokens(first.stream)) > _LONGEST:
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
