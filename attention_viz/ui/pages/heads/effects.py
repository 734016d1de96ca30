"""One change's effect on each head, computed in batches and cached."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from attention_viz.edits.change import Change
from attention_viz.edits.changes import to_edits
from attention_viz.edits.effects import moved_rows
from attention_viz.recording.batches.batched_edits import rows_at_once, try_each
from attention_viz.serving.runs import Run, ask
from attention_viz.trace.provenance import Provenance
from attention_viz.ui import visit
from attention_viz.ui.address import State

__all__ = ["Head", "effects_of", "heads_of", "known_effects", "offer_all"]

# So many changes of a visit's are kept.
_MOST = 4

Head = tuple[int, int]


@dataclass
class _Effects:
    of: dict[tuple[Provenance, Change], dict[Head, float]] = field(default_factory=dict[Any, dict[Head, float]])


def heads_of(run: Run, stream: str, layer: int | None = None) -> list[Head]:
    """Return layer and head for a stream's, or one layer's, heads."""
    layers = run.trace.layer_numbers(stream) if layer is None else [layer]
    return [(one, head) for one in layers for head in range(run.trace.head_count(one, stream))]


def known_effects(run: Run, change: Change, stream: str) -> dict[Head, float]:
    """Return this text's and change's cached effects; writes survive a click that stops the page."""
    asked = (run.trace.provenance, replace(change, layer=None, head=None, stream=stream))
    stored = visit.memory(_Effects).of
    if asked not in stored:
        while len(stored) >= _MOST:
            del stored[next(iter(stored))]
        stored[asked] = dict[Head, float]()
    return stored[asked]


def offer_all(run: Run, state: State, change: Change, stream: str, heads: Sequence[Head], label: str, key: str) -> None:
    """Offer to change each untried head; a click elsewhere stops it."""
    known = known_effects(run, change, stream)
    if all(head in known for head in heads):
        return
    if not st.button(label, key=f"{key}-all"):
        return
    st.button("Stop", key=f"{key}-stop")
    bar = st.progress(0.0)

    def report(done: int) -> None:
        bar.progress(done / len(heads), f"{done} of {len(heads)} heads tried")

    _ = effects_of(run, state, change, stream, heads, report)
    visit.run_again()


def effects_of(
    run: Run,
    state: State,
    change: Change,
    stream: str,
    heads: Sequence[Head],
    report: Callable[[int], object] = lambda _: None,
) -> Mapping[Head, float]:
    """Return each head's cached effect: the output change's relative length, averaged over tokens."""
    known = known_effects(run, change, stream)
    missing, size = [head for head in heads if head not in known], rows_at_once(run.trace)
    named = stream if len(run.trace.streams) > 1 else None
    for start in range(0, len(missing), size):
        report(len(heads) - len(missing) + start)
        batch = missing[start : start + size]
        tries = [to_edits(replace(change, layer=layer, head=head, stream=named), run.trace) for layer, head in batch]
        outputs = ask(state.request, lambda model, tries=tries: try_each(model, run.trace, tries))
        known |= {
            head: float(moved_rows(run.trace.output, output).mean())
            for head, output in zip(batch, outputs, strict=True)
        }
    return {head: known[head] for head in heads}
