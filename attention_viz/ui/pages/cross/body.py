"""The Cross-attention page's body: what an encoder–decoder says, and which word of the source each step looks at."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz import views
from attention_viz.serving.runs import Drawn
from attention_viz.serving.verifying import verify
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.cross.places import HEIGHT, Places
from attention_viz.ui.pages.cross.words import in_words, show_alignment, show_target
from attention_viz.ui.parts.drawing import draw_in_place, show_notes
from attention_viz.ui.parts.explorer import chosen, show_explorer
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.reading_downloads import show_read_downloads
from attention_viz.ui.parts.readings import heatmap, read_in_place, show_reading
from attention_viz.ui.parts.themes import theme_name

__all__ = ["show_body"]

_STREAM = "cross"


def show_body(state: State, places: Places) -> None:
    """Run the sentence and fill the places.

    Args:
        state: what the pickers say, of the cross-attention.
        places: from `hold_places`.
    """
    drawn = draw_in_place(state, places.explorer, HEIGHT, whole=True)
    if drawn is None:
        places.line.empty()
        return
    with places.notes:
        show_notes(drawn, state, rows=False)
    with places.beside.container(key="said"):
        show_target(drawn.trace)
    shown = read_in_place(drawn, state, places.explorer, HEIGHT)
    if shown is not None:
        with places.beside.container(key="alignment"):
            show_alignment(shown.trace, state.layer, state.head)
        _show(shown, state, places.explorer)
        with places.downloads:
            show_read_downloads(drawn, shown, state)
    show_reading(shown, state)
    if drawn.fit is not None:
        verify(drawn)
    places.badge.show(drawn.trace, from_file=drawn.fit is None)
    if shown is not None:
        _show_pictures(shown.trace, state)


def _show(drawn: Drawn, state: State, place: DeltaGenerator) -> None:
    """The explorer, with nothing in it but what this page is about."""
    shown = drawn.alone(state.stream)
    with place.container():
        show_explorer(shown, _STREAM, state.layer, state.head, _take_choice)


def _take_choice() -> None:
    """A head chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is not None:
        st.session_state["layer"] = int(choice["layer"])
        reading.take_head(int(choice["head"]))


def _show_pictures(trace: Trace, state: State) -> None:
    """The chosen head once more as Plotly figures, to zoom and to read every number."""
    theme = theme_name()
    words = in_words(trace, state.layer, state.head)
    st.markdown("##### The same head, to zoom into")
    lines = views.alignment(trace, state.layer, state.head, _STREAM, theme=theme)
    show_picture(lines, "lines", words, tools=True)
    st.caption(plain(words))
    matrix = heatmap(trace, state, _STREAM, theme)
    show_picture(matrix, "matrix", f"Layer {state.layer}, {reading.head_name(state)}, as a matrix", tools=True)
