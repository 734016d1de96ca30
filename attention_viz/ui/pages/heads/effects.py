"""What one and the same change does when it is made to other heads: worked out in batches, and kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from attention_viz.edits.change import Change
from attention_viz.edits.changes import to_edits
from attention_viz.edits.effects import moved_rows
from attention_viz.models.recording.batched_edits import rows_at_once, try_each
from attention_viz.serving.runs import Drawn, ask
from attention_viz.ui.address import State

__all__ = ["Head", "effects_of", "heads_of", "known_effects"]

_EFFECTS = "edits-effects"

Head = tuple[int, int]


def heads_of(drawn: Drawn, stream: str, layer: int | None = None) -> list[Head]:
    """Layer and head of every head of a stream, or of one layer."""
    layers = range(drawn.trace.layer_count(stream)) if layer is None else [layer]
    return [(one, head) for one in layers for head in range(drawn.trace.head_count(one, stream))]


def known_effects(drawn: Drawn, change: Change, stream: str) -> dict[Head, float]:
    """What is worked out already for this text and this change, whichever head it was made to.

    Whoever writes into it keeps that, also where a click stops the page's run a moment later.
    """
    asked = (drawn.trace.provenance, replace(change, layer=None, head=None, stream=stream))
    stored = st.session_state.get(_EFFECTS)
    if stored is None or stored[0] != asked:
        stored = st.session_state[_EFFECTS] = (asked, dict[Head, float]())
    return stored[1]


def effects_of(
    drawn: Drawn,
    state: State,
    change: Change,
    stream: str,
    heads: Sequence[Head],
    report: Callable[[int], object] = lambda _: None,
) -> Mapping[Head, float]:
    """How far the output moves when the change is made to each of these heads alone, all else as it was.

    The length of the change over the length before, on average over the tokens. What was worked out before isn't
    again.

    Args:
        drawn: the run without any change.
        state: what the pickers say.
        change: what is done to each head, whichever it was chosen for.
        stream: whose heads.
        heads: layer and head of each.
        report: is told before each batch how many of the heads are done.

    Raises:
        AttentionVizError: the change can't be made in this model; the message says why.
    """
    known = known_effects(drawn, change, stream)
    missing, size = [head for head in heads if head not in known], rows_at_once(drawn.trace)
    named = stream if len(drawn.trace.streams) > 1 else None
    for start in range(0, len(missing), size):
        report(len(heads) - len(missing) + start)
        batch = missing[start : start + size]
        tries = [to_edits(replace(change, layer=layer, head=head, stream=named), drawn.trace) for layer, head in batch]
        outputs = ask(state.request, lambda model, tries=tries: try_each(model, drawn.trace, tries))
        known |= {
            head: float(moved_rows(drawn.trace.output, output).mean())
            for head, output in zip(batch, outputs, strict=True)
        }
    return {head: known[head] for head in heads}
