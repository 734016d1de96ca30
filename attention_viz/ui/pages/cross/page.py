"""The Cross-attention page: what an encoder–decoder says, and which word of the source each step looks at."""

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.models import CATALOGUE
from attention_viz.serving.runs import Drawn, verify
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.controls.target import streams
from attention_viz.ui.pages.cross.words import in_words, show_alignment, show_said
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.badge import Badge
from attention_viz.ui.parts.drawing import draw_in_place, tell
from attention_viz.ui.parts.explorer import chosen, show_explorer
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import show_header
from attention_viz.ui.parts.reading_downloads import show_read_downloads
from attention_viz.ui.parts.themes import theme_name

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["EXAMPLE", "show_page"]

_STREAM = "cross"
_HEIGHT = 560

# Its head 1 aligns: see the model's card.
EXAMPLE = State(
    model="translation", text="the boy finds the key and he sells it", layer=0, head=1, stream=_STREAM, target=""
)


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin(example=EXAMPLE)
    show_header()
    state = pickers.choose(_STREAM, with_readings=True)
    pickers.keep(state)
    line = st.empty()
    if _STREAM not in streams(state):
        _offer_example(state)
        return
    with line.container(key="bar", horizontal=True, vertical_alignment="center"):
        badge, downloads = Badge(), st.container(horizontal=True, key="downloads")
    notes = st.container()
    with st.container(key="cross"):
        left, right = st.columns([3.35, 1])
    with left.container(key="stage", height=_HEIGHT, border=False):
        place = st.empty()
    drawn = draw_in_place(state, place, _HEIGHT, whole=True)
    if drawn is None:
        line.empty()
        return
    with notes:
        tell(drawn, state, rows=False)
    with right.container(key="said"):
        show_said(drawn.trace)
    asked = replace(state, stream=_STREAM)
    shown = readings.read_in_place(drawn, asked, place, _HEIGHT)
    if shown is not None:
        with right.container(key="alignment"):
            show_alignment(shown.trace, state.layer, state.head)
        _show(shown, asked, place)
        with downloads:
            show_read_downloads(drawn, shown, asked)
    readings.tell(shown, asked)
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)
    if shown is not None:
        _show_pictures(shown.trace, state)


def _show(drawn: Drawn, state: State, place: DeltaGenerator) -> None:
    """The explorer, with nothing in it but what this page is about."""
    shown = drawn.alone(state.stream)
    with place.container():
        show_explorer(shown.payload, _STREAM, state.layer, state.head, _take_choice)


def _take_choice() -> None:
    """A head chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is not None:
        st.session_state["layer"] = int(choice["layer"])
        readings.take_head(int(choice["head"]))


def _show_pictures(trace: "Trace", state: State) -> None:
    """The chosen head once more as Plotly figures, to zoom and to read every number."""
    from attention_viz.views import alignment

    theme = theme_name()
    words = in_words(trace, state.layer, state.head)
    st.markdown("##### The same head, to zoom into")
    lines = alignment(trace, state.layer, state.head, _STREAM, theme=theme)
    show_picture(lines, "lines", words, tools=True)
    st.caption(plain(words))
    matrix = readings.heatmap(trace, state, _STREAM, theme)
    show_picture(matrix, "matrix", f"Layer {state.layer}, {readings.head_name(state)}, as a matrix", tools=True)


def _offer_example(state: State) -> None:
    """Say in the page's place why there is nothing to see, and how to see something."""
    able = [f"{name} ({entry.short})" for name, entry in CATALOGUE.items() if _STREAM in entry.streams]
    what = "The trace in this file" if opening.opened() is not None else state.model
    st.info(
        plain(
            f"{what} has no cross-attention: it reads one text and says no other. Cross-attention needs an "
            f"encoder–decoder. In the catalogue that is {', '.join(able)}; others can be opened from a folder or "
            "from the hub. Your sentence stays in the box."
        )
    )
    st.button(
        f"Show {EXAMPLE.model} with “{EXAMPLE.text}”",
        on_click=_take_example,
        help="Your sentence comes back with the browser's Back.",
    )


def _take_example() -> None:
    opening.close()
    for name in ("model", "text", "target", "layer", "head", "stream"):
        st.session_state[name] = getattr(EXAMPLE, name)
