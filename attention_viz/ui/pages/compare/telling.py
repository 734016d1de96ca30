"""The head that the Compare page opens on: of two sentences that no page has shown yet, the one that differs most."""

from dataclasses import dataclass

import torch

from attention_viz.errors import AttentionVizError
from attention_viz.ui import visit
from attention_viz.ui.address import State, own_example
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.heads import apart_of
from attention_viz.ui.pages.compare.sides import Run, compared
from attention_viz.ui.parts.selection import settled
from attention_viz.ui.selection import SHARED

__all__ = ["settle_head"]

# Up to this many tokens all heads are compared before any is drawn.
_LONGEST = 128


@dataclass
class _SettledOn:
    """Which model and two texts the page found a head for last."""

    of: tuple[str, str, str] | None = None


def settle_head(choice: CompareChoice, state: State, first: Run, second: Run) -> None:
    """Have two new sentences open on the head that differs most; the page then runs again from its beginning.

    A head or a pair that somebody chose stays, as does that of a text which another page has shown already.

    Args:
        choice: what is compared.
        state: what the pickers say.
        first: the run of the first sentence.
        second: the run of the second.
    """
    of = (state.model, state.text, choice.other)
    memory = visit.memory(_SettledOn)
    seen, memory.of = memory.of == of, of
    if seen or visit.went_through_history() or not _is_open(state, first):
        return
    try:
        apart = apart_of(compared(choice, first, second))
    except AttentionVizError:
        return
    row, head = divmod(int(torch.nan_to_num(apart, nan=-1.0).argmax()), apart.shape[1])
    layer = second.drawn.trace.layer_numbers(second.stream)[row]
    if apart[row, head] > 0 and (layer, head) != (state.layer, state.head):
        visit.fill(SHARED, layer=layer, head=head)
        # The pickers are drawn already: they show it in the next run.
        visit.run_again()


def _is_open(state: State, first: Run) -> bool:
    """Whether nobody has chosen what is looked at; a model's own example comes with its head."""
    chosen = not visit.here().selection.head_is_free or state.query is not None or settled(first.drawn, state)
    short = len(first.drawn.trace.query_tokens(first.stream)) <= _LONGEST
    return short and not chosen and is_raw(state) and state.text != own_example(state.model)
