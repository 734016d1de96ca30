"""Likeliest tokens after a decoder's text or at an encoder's mask."""

from collections.abc import Mapping

import pandas
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.serving.runs import Run, candidates
from attention_viz.trace.spelling import SPACE, set_apart
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.explore.cache import show_cache, show_eviction, show_steps, step_words
from attention_viz.ui.pages.explore.page import CANDIDATES_TITLE, CANDIDATES_WIDTH, goes_on_for_sure
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.selection import show_why
from attention_viz.ui.parts.themes import theme_name
from attention_viz.ui.parts.writes import hold_writes

__all__ = ["find_candidates", "show_candidates"]

_COUNT = 6
# Of a text with many masks; the others can be had in Python.
_MOST_MASKS = 3


def find_candidates(run: Run, state: State, back: int) -> Mapping[int, pandas.DataFrame]:
    """Return likeliest tokens by position; empty if nothing is predicted, or for file traces."""
    return {} if run.fit is None else candidates(state.request, run.trace, _COUNT, back)


def show_candidates(
    run: Run, found: Mapping[int, pandas.DataFrame], state: State, uncut: str = ""
) -> DeltaGenerator | None:
    """Draw the predictions; return the written words' place, see `hold_writes`."""
    trace, writes = run.trace, None
    if not found:
        st.empty()
        return None
    decoder = trace.streams == ("decoder",)
    frame = (
        st.container(gap="small") if goes_on_for_sure(state) else st.container(key="candidates", width=CANDIDATES_WIDTH)
    )
    with frame:
        for position, likely in list(found.items())[:_MOST_MASKS]:
            mask = trace.query_tokens().written[position]
            title = CANDIDATES_TITLE if decoder else f"What stands behind {mask}"
            st.markdown(f"**{plain(title)}**")
            if decoder:
                show_steps(trace, len(trace.query_tokens()) - 1 - position)
                if uncut:
                    st.caption(plain(uncut))
            st.caption(plain(_sentence(trace, position, likely, decoder=decoder)))
            figure = views.candidates(trace, state.layer, state.head, likely, position, theme=theme_name())
            words = ", ".join(
                f"{set_apart(trace.query_tokens().write(token))} {share:.3f}"
                for token, share in zip(likely.token, likely.probability, strict=True)
            )
            show_picture(figure, f"candidates-{position}", f"{title}: {words}")
            if position == next(iter(found)):
                writes = hold_writes(run, state)
            if decoder:
                show_cache(trace, state, position)
                show_eviction(state)
                if position == len(trace.query_tokens()) - 1 and not state.own:
                    _offer_why(trace, likely)
    return writes


def _offer_why(trace: Trace, likely: pandas.DataFrame) -> None:
    words = [trace.query_tokens().write(token).strip(f"{SPACE} ") for token in likely.token]
    words = [word for word in dict.fromkeys(words) if word]
    if not words:
        return
    pressed = st.pills("Press one word, or two", words, selection_mode="multi", key="asked-words")
    first, *others = [*pressed[:2]] or words[:1]
    beside = f" and not “{others[0]}”" if others else ""
    if st.button(plain(f"Why “{first}”{beside}?"), key="why-word"):
        show_why(first, *others)


def _sentence(trace: Trace, position: int, likely: pandas.DataFrame, *, decoder: bool) -> str:
    best = set_apart(trace.query_tokens().write(likely.token[0]))
    if not decoder:
        return f"Likeliest at position {position}, from all heads together: “{best}”."
    last = set_apart(trace.query_tokens().written[-1])
    if words := step_words(trace, position):
        return words
    return f"Likeliest after the last row, “{last}”, from all heads together: “{best}”."
