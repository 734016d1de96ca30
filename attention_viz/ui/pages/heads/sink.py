"""Heads whose weight rests on the first token, and its effect."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import streamlit as st

from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.sinks import attention_sinks
from attention_viz.errors import AttentionVizError
from attention_viz.serving.run import Run
from attention_viz.serving.runs import ask
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.words import named
from attention_viz.ui.parts.markdown import plain

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["show_sink", "sink_words"]

# Of longer texts the weights of a whole layer are too many for one line.
_LONGEST = 256

# Of traces that the app keeps: a line for each head that was looked at.
_lines: "WeakKeyDictionary[Trace, dict[tuple[str, int, int], str]]" = WeakKeyDictionary()


def show_sink(run: Run, state: State) -> None:
    """Show the chosen head's sink line; none for files, which have no model."""
    stream = run.stream(state.stream)
    if run.fit is None or len(run.trace.key_tokens(stream)) > _LONGEST:
        return
    place = (stream, *run.place(stream, state.layer, state.head))
    lines = _lines.setdefault(run.trace, {})
    if place not in lines:
        lines[place] = _line(run.trace, state, *place)
    if lines[place]:
        st.caption(plain(lines[place]))


def _line(trace: "Trace", state: State, stream: str, layer: int, head: int) -> str:
    try:
        table = ask(state.request, lambda model: attention_sinks(model, trace, stream, layer))
    except AttentionVizError:  # nothing tells what this model's heads write
        return ""
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    first = QueryRows.of(queries, keys, alike=stream != "cross").first
    row = dict(zip(table.columns, table.to_numpy()[table.index.get_loc((layer, head))].tolist(), strict=True))
    return sink_words(row, named(keys, first))


def sink_words(row: Mapping[str, float], first: str) -> str:
    """Describe a head's first-token weight and its effect; empty if it has no sink."""
    if not row["weight"] >= ROLES["first"].threshold or not row["others"] > 0:
        return ""
    return (
        f"On average it gives {row['weight']:.2f} of its weight to {first}, the first token. What it fetches "
        f"there is {row['length'] / row['others']:.2f} times as long as elsewhere: {row['fetched']:.2f} of all that it "
        "fetches."
    )
