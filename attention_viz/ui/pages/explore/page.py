"""The Explore page: a sentence, a model, and every head of it at once."""

from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.serving.runs import verify
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.explore.candidates import find_candidates, hold_candidates, show_candidates
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import draw_in_place, tell
from attention_viz.ui.parts.explorer import chosen, show_explorer
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.parts.reading_downloads import show_read_downloads
from attention_viz.ui.parts.themes import theme_name

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["show_page"]

# The explorer's height on a wide screen, so that nothing below jumps when it arrives.
_HEIGHT = 600


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin()
    show_header()
    state = pickers.choose(with_readings=True)
    pickers.keep(state)
    line = st.empty()
    with line.container(key="bar", horizontal=True, vertical_alignment="center"):
        badge, downloads = Badge(), st.container(horizontal=True, key="downloads")
    notes = st.container()
    # This height holds until the page's style has arrived, which lets the explorer have its own.
    with st.container(key="stage", height=_HEIGHT, border=False):
        with st.container(key="views", horizontal=True):
            # Side by side, not one in the other: the explorer stays as it is while the panel comes and goes.
            place, panel = st.empty(), hold_candidates(state)
    drawn = draw_in_place(state, place, _HEIGHT, whole=True)
    if drawn is None:
        line.empty()
        panel.empty()
        return
    stream = drawn.stream(state.stream)
    with notes:
        tell(drawn, state)
    shown = readings.read_in_place(drawn, state, place, _HEIGHT)
    if shown is not None:
        with place.container():
            show_explorer(shown.payload, stream, state.layer, readings.head(state), _take_choice)
        with downloads:
            show_read_downloads(drawn, shown, state)
    show_candidates(panel, drawn.trace, find_candidates(drawn, state), state)
    readings.tell(shown, state)
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)
    if shown is not None:
        _matrix(shown.trace, stream, state)


def _take_choice() -> None:
    """A head chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is not None:
        st.session_state["layer"], st.session_state["stream"] = int(choice["layer"]), choice["stream"]
        readings.take_head(int(choice["head"]))


def _matrix(trace: "Trace", stream: str, state: State) -> None:
    """The chosen head once more as a Plotly figure, to zoom and to read every number."""
    st.markdown(f"##### The same {'layer' if readings.together(state) else 'head'}, to zoom into")
    figure = readings.heatmap(trace, state, stream, theme_name())
    show_picture(figure, "matrix", f"Layer {state.layer}, {readings.head_name(state)}, as a matrix", tools=True)
