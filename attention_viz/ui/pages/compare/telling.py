"""The Compare page's first head: the one differing most between two sentences."""

import torch

from attention_viz.errors import AttentionVizError
from attention_viz.ui.address import own_example
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.heads import apart_of
from attention_viz.ui.pages.compare.sides import ShownSide, compared
from attention_viz.ui.selection import SHARED, Filled, Selection, update

__all__ = ["follow_difference"]

# Up to this many tokens all heads are compared before any is drawn.
_LONGEST = 128


def follow_difference(selection: Selection, choice: CompareChoice, first: ShownSide, second: ShownSide) -> Selection:
    """Select the head that differs most between two sentences, unless one was chosen."""
    # A text that another page has opened keeps the head that it has there.
    if not _is_open(selection, first) or selection.found_for == selection.text:
        return selection
    try:
        apart = apart_of(compared(choice, first, second))
    except AttentionVizError:
        return selection
    row, head = divmod(int(torch.nan_to_num(apart, nan=-1.0).argmax()), apart.shape[1])
    layer = second.run.trace.layer_numbers(second.stream)[row]
    if apart[row, head] <= 0 or (layer, head) == (selection.shared.layer, selection.shared.head):
        return selection
    return update(selection, Filled(SHARED, {"layer": layer, "head": head}))


def _is_open(selection: Selection, first: ShownSide) -> bool:
    """Return whether nobody chose; a model's example brings its head."""
    state = selection.shared
    short = len(first.run.trace.query_tokens(first.stream)) <= _LONGEST
    free = selection.head_is_free and state.query is None
    return short and free and is_raw(state) and state.text != own_example(state.model)
