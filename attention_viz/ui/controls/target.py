"""What an encoder–decoder asks for: what it is to say, and which of its kinds of attention is shown."""

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.address.shared import SHARED, hold_stream, untouched_stream
from attention_viz.ui.parts import open_trace as opening

__all__ = ["STREAMS", "asks_target", "pick_stream", "settle_stream", "streams"]

# Each kind of attention in plain words.
STREAMS = {
    "encoder": "encoder: source looks at itself",
    "decoder": "decoder: what was said looks back",
    "cross": "cross: what is said looks at the source",
}


def streams(state: State) -> tuple[str, ...]:
    """The kinds of attention there are to choose from; none of a model that nobody has loaded yet."""
    drawn = opening.opened()
    return tuple(state.facts.heads) if drawn is None else drawn.trace.streams


def asks_target(state: State) -> bool:
    """Whether the model can be told what to say; of a trace from a file that is over."""
    return opening.opened() is None and state.facts.is_encoder_decoder


def settle_stream(state: State, only: str | None) -> None:
    """See that a kind of attention is chosen that there is, before layers and heads are counted.

    Args:
        state: what the widgets hold.
        only: the one that the page is about, if it is about one.
    """
    found = streams(state)
    # Of a sound, what is said of it is what one came for: no finding of its encoder takes that away.
    said = state.facts.reads == "sound" and "cross" in found
    first = "cross" if said else next(iter(found), None)
    by_nobody = len(found) > 1 and state.stream not in found
    if by_nobody:
        hold_stream(None if said else first)
    elif not untouched_stream():
        hold_stream(None)
    SHARED.adjust(stream=only or (first if by_nobody else state.stream))


def pick_stream(state: State) -> None:
    """The picker, for a model with several."""
    found = streams(state)
    if len(found) > 1:
        st.selectbox(
            "Stream",
            found,
            format_func=_called,
            key="stream",
            width=180,
            label_visibility="collapsed",
            persist_state="session",
        )


def _called(stream: str) -> str:
    return STREAMS.get(stream, stream)
