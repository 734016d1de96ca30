"""An encoder-decoder's target text and shown stream."""

import streamlit as st

from attention_viz.trace.shown.kind import InputKind
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.selection import SHARED, Filled

__all__ = ["STREAMS", "asks_target", "pick_stream", "settle_stream", "streams"]

# Each kind of attention in plain words.
STREAMS = {
    "encoder": "encoder: source looks at itself",
    "decoder": "decoder: what was said looks back",
    "cross": "cross: what is said looks at the source",
}


def streams(state: State) -> tuple[str, ...]:
    """Return a loaded model's streams, else none."""
    run = opening.opened()
    return tuple(state.facts.heads) if run is None else run.trace.streams


def asks_target(state: State) -> bool:
    """Return whether the model takes a target; False for open traces."""
    return opening.opened() is None and state.facts.is_encoder_decoder


def settle_stream(state: State, only: str | None) -> None:
    """Choose an existing stream before layers and heads are counted."""
    found = streams(state)
    if only is not None and state.stream != only:
        visit.send(Filled(SHARED, {"stream": only}, stays=True))
    elif only is None and len(found) > 1 and state.stream not in found:
        # People bring a sound to see what is said of it.
        said = state.facts.reads == InputKind.SOUND and "cross" in found
        visit.fill(SHARED, stream="cross" if said else found[0])


def pick_stream(state: State) -> None:
    """The picker, for a model with several."""
    found = streams(state)
    if len(found) > 1:
        widgets.show(
            st.selectbox,
            "Stream",
            of=SHARED,
            name="stream",
            options=found,
            format_func=_called,
            width=180,
            label_visibility="collapsed",
        )


def _called(stream: str) -> str:
    return STREAMS.get(stream, stream)
