"""Words promoted and suppressed by the head's output."""

from collections.abc import Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.run import Run
from attention_viz.serving.why import words_written
from attention_viz.trace.spelling import set_apart
from attention_viz.ui.address import State
from attention_viz.ui.parts.markdown import plain

__all__ = ["hold_writes", "show_writes"]

# A longer text is opened on the Why page alone, where somebody asks for it.
_LONGEST = 256
_HELP = (
    "What this head's output adds to each word's logit, against the mean over all words: the words that get most, and "
    "those that lose most. Direct effect; norms and patterns held fixed. It is told of this text, since weights alone "
    "don't tell which heads copy: in SmolLM2 the two have a correlation of 0.15."
)


def hold_writes(run: Run, state: State) -> DeltaGenerator | None:
    """Reserve two lines; none for long texts and rows without words."""
    stream = run.stream(state.stream)
    can_write = run.fit is not None and not state.own and state.facts.predicts and not state.shown
    read_alone = stream == "encoder" and state.facts.is_encoder_decoder
    if not can_write or read_alone or len(run.trace.query_tokens(stream)) > _LONGEST:
        return None
    with st.container(key="head-writes"):
        return st.empty()


def show_writes(place: DeltaGenerator | None, run: Run, state: State, position: int) -> None:
    """Fill the slot last, since it opens the run."""
    if place is None:
        return
    stream = run.stream(state.stream)
    head = run.place(stream, state.layer, state.head)
    promoted, suppressed = words_written(run, state.request, stream, head, position)
    if not promoted:
        place.caption("It adds to no word by itself: other layers read what it writes.")
        return
    lines = f"Writes for: {_listed(promoted)}", f"against: {_listed(suppressed)}"
    place.caption("  \n".join(map(plain, lines)), help=_HELP)


def _listed(words: Iterable[str]) -> str:
    """Join words without reordering right-to-left ones."""
    return ", ".join(map(set_apart, words))
