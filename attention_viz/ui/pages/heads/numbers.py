"""Numbers of all heads, computed once for all visitors."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pandas
import streamlit as st
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.head_table import head_table, mean_table
from attention_viz.analysis.likeness import head_distances
from attention_viz.analysis.roles import roles
from attention_viz.analysis.signed import has_channels
from attention_viz.edits.change import Change
from attention_viz.edits.changes import to_edits
from attention_viz.edits.effects import moved_rows
from attention_viz.explorer.atlas_payload import HeadTables, pack_atlas
from attention_viz.recording.batches.batched_edits import rows_at_once, try_each
from attention_viz.serving.runs import Run, ask
from attention_viz.trace.ahead import unsaid
from attention_viz.trace.provenance import Provenance
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State

_Made = TypeVar("_Made")

# Results cached per trace, since visitors can type any search words.
_MOST = 24

_results: WeakKeyDictionary[Trace, dict[Hashable, Any]] = WeakKeyDictionary()
# Changes cached per visit.
_MOST_CHANGES = 4

Head = tuple[int, int]


def made_once(trace: Trace, what: Hashable, make: Callable[[], _Made]) -> _Made:
    """Return a trace's cached result, or make it (if full, the oldest goes); errors aren't cached."""
    of_trace = _results.setdefault(trace, {})
    if what not in of_trace:
        made = make()
        while len(of_trace) >= _MOST:
            # Another visitor's run may have removed the same one meanwhile.
            of_trace.pop(next(iter(of_trace)), None)
        of_trace[what] = made
        return made
    return of_trace[what]


def _numbers(trace: Trace, stream: str) -> pandas.DataFrame:
    """Return every head's metrics; long texts use sampled rows until all are measured."""
    whole = _results.get(trace, {}).get(("table", stream, "all"))
    return made_once(trace, ("table", stream), lambda: _measured(trace, stream)) if whole is None else whole


def _measured(trace: Trace, stream: str) -> pandas.DataFrame:
    with unsaid():
        return head_table(trace, stream)


def measure_all(trace: Trace, stream: str, progress: Callable[[float], object]) -> None:
    """Measure every head from all rows, which `numbers` returns thereafter."""
    with unsaid():
        made_once(trace, ("table", stream, "all"), lambda: head_table(trace, stream, rows="all", progress=progress))


def mean_numbers(traces: Sequence[Trace], stream: str) -> pandas.DataFrame:
    """Average the heads' table over texts, with spread."""
    if len(traces) == 1:
        return _numbers(traces[0], stream)
    return mean_table([_numbers(trace, stream) for trace in traces])


def distances(trace: Trace, stream: str) -> Float[Tensor, "one other"]:
    """Return the distance between every two heads."""
    return made_once(trace, ("distances", stream), lambda: head_distances(trace, stream))


def roles_of(traces: Sequence[Trace], stream: str, texts: Hashable) -> pandas.DataFrame:
    """Return each head's main role; `texts` names the other traces' texts."""
    return made_once(traces[0], ("roles", stream, texts), lambda: roles(traces, stream))


def streams_together(trace: Trace, stream: str) -> tuple[str, ...]:
    """Return the streams that one atlas shows: with and without a softmax, if they read the same tokens."""
    if not trace.mixers or stream not in (*trace.attention_streams[:1], *trace.mixers):
        return (stream,)
    return (*trace.attention_streams[:1], *trace.mixers)


def packed(trace: Trace, parts: Mapping[str, HeadTables], texts: Hashable) -> bytes:
    """Pack the atlas; `texts` names the tables' texts beyond the trace's."""
    (stream, first), *others = parts.items()
    what = ("atlas", stream, texts, *(part.table.attrs.get("rows") for part in parts.values()))
    return made_once(trace, what, lambda: pack_atlas(trace, stream, *first, dict(others)))


@dataclass
class _Effects:
    of: dict[tuple[Provenance, Change], dict[Head, float]] = field(default_factory=dict[Any, dict[Head, float]])


def heads_of(run: Run, stream: str, layer: int | None = None) -> list[Head]:
    """Return a stream's, or one layer's, heads; of a layer with a matrix per channel, one for all."""
    trace = run.drawn
    layers = trace.layer_numbers(stream) if layer is None else [layer]
    return [(one, head) for one in layers for head in range(trace.head_count(one, stream))]


def changed_head(change: Change, run: Run, stream: str, head: Head) -> Change:
    """Return a change for one head alone; of a layer with a matrix per channel, for all its channels."""
    layer, one = head
    channels = has_channels(run.trace, stream, layer)
    return replace(change, layer=layer, head=None if channels else one, stream=stream if run.several else None)


def known_effects(run: Run, change: Change, stream: str) -> dict[Head, float]:
    """Return cached effects; writes survive a click that stops the page."""
    asked = (run.trace.provenance, replace(change, layer=None, head=None, stream=stream))
    stored = visit.memory(_Effects).of
    if asked not in stored:
        while len(stored) >= _MOST_CHANGES:
            del stored[next(iter(stored))]
        stored[asked] = dict[Head, float]()
    return stored[asked]


def offer_all(
    run: Run, state: State, change: Change, heads: Mapping[str, Sequence[Head]], label: str, key: str
) -> None:
    """Offer to change each untested head, by stream; a click elsewhere stops it."""
    if all(head in known_effects(run, change, stream) for stream, some in heads.items() for head in some):
        return
    if not st.button(label, key=f"{key}-all"):
        return
    st.button("Stop", key=f"{key}-stop")
    bar, count, before = st.progress(0.0), sum(map(len, heads.values())), 0

    for stream, some in heads.items():

        def report(done: int, before: int = before) -> None:
            bar.progress((before + done) / count, f"{before + done} of {count} heads tested")

        _ = effects_of(run, state, change, stream, some, report)
        before += len(some)
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
    for start in range(0, len(missing), size):
        report(len(heads) - len(missing) + start)
        batch = missing[start : start + size]
        tries = [to_edits(changed_head(change, run, stream, head), run.trace) for head in batch]
        outputs = ask(state.request, lambda model, tries=tries: try_each(model, run.trace, tries))
        known |= {
            head: float(moved_rows(run.trace.output, output).mean())
            for head, output in zip(batch, outputs, strict=True)
        }
    return {head: known[head] for head in heads}
