"""Next or masked words' probabilities before and after a change."""

from collections.abc import Sequence

import streamlit as st

from attention_viz.edits.effects import likelier, moved_output
from attention_viz.serving.runs import Run, ask, candidates
from attention_viz.trace.spelling import set_apart
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.style.wording import shortened

__all__ = ["likelier_at", "predicted", "show_likelier", "title_of"]

# Of a text with many masks; the others can be had in Python.
_MOST_PLACES = 3


def predicted(before: Run, after: Run, state: State) -> list[int]:
    """Return the predictions' positions: last token or masks; none without predictions.

    Of an encoder–decoder, the step whose output moved most, else the chosen pair's.
    """
    if state.facts.is_encoder_decoder and state.facts.predicts:
        moved = moved_output(before.trace, after.trace)
        of_decoder = before.stream(state.stream) in ("decoder", "cross")
        return [int(moved.argmax()) if moved.any() or not of_decoder else pair_of(before, state)[0]]
    return list(candidates(state.request, before.trace, 1))[:_MOST_PLACES]


def show_likelier(before: Run, after: Run, state: State, places: Sequence[int]) -> None:
    """Draw a table of both runs' likeliest tokens for each position."""
    for place in places:
        st.markdown(f"**{plain(title_of(before.trace, place))}**")
        st.markdown(_table(likelier_at(before, after, state, place)))


def title_of(trace: Trace, place: int) -> str:
    """What is predicted at a position, in words."""
    label = _tokens(trace).written[place]
    label = set_apart(label.strip("· ") or label)
    if trace.streams == ("encoder",):
        return f"What stands behind {label} (position {place})"
    return f"What comes after “{label}” (position {place})"


def likelier_at(before: Run, after: Run, state: State, place: int) -> list[tuple[str, float, float]]:
    """Return the likeliest tokens' probabilities before and after."""
    found = likelier(before.trace, after.trace, place)
    labels = ask(state.request, lambda model: model.labels([number for number, *_ in found]))
    return [(_tokens(before.trace).write(label), old, new) for label, (_, old, new) in zip(labels, found, strict=True)]


def _tokens(trace: Trace) -> Tokens:
    """Return the decoder's tokens."""
    return trace.query_tokens("decoder" if "cross" in trace.streams else None)


def _table(rows: Sequence[tuple[str, float, float]]) -> str:
    lines = [f"| {plain(shortened(label))} | {old:.3f} | {new:.3f} |" for label, old, new in rows]
    return "\n".join(["| token | before | after |", "|---|---:|---:|", *lines])
