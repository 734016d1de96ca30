"""The Explore page: a sentence, a model, and every head of it at once."""

from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.models import CATALOGUE
from attention_viz.ui import opening, pickers
from attention_viz.ui.badge import Badge
from attention_viz.ui.downloads import show_downloads
from attention_viz.ui.host import chosen, show_explorer
from attention_viz.ui.markdown import plain
from attention_viz.ui.menu import show_header
from attention_viz.ui.serving import Drawn, draw, is_loaded, verify
from attention_viz.ui.settings import SETTINGS
from attention_viz.ui.state import State

if TYPE_CHECKING:
    from attention_viz.tokens import Fit
    from attention_viz.trace import Trace

__all__ = ["show_page"]

# The explorer's height on a wide screen, so that nothing below jumps when it arrives.
_HEIGHT = 600


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    pickers.begin()
    show_header()
    state = pickers.choose()
    pickers.keep(state)
    bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
    notes, place = st.container(), st.empty()
    drawn = opening.opened() or _draw(state, place)
    if drawn is None:
        return
    stream = drawn.trace.streams[0]
    with notes:
        _tell(drawn, state)
    with place.container():
        show_explorer(drawn.payload, stream, state.layer, state.head, _take_choice)
    with bar:
        badge = Badge()
        show_downloads(drawn.trace, stream, state.layer, state.head)
    if drawn.fit is not None:
        verify(drawn)
    badge.show(drawn.trace, from_file=drawn.fit is None)
    _matrix(drawn.trace, stream, state)


def _take_choice() -> None:
    """A head chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is not None:
        st.session_state["layer"], st.session_state["head"] = int(choice["layer"]), int(choice["head"])


def _draw(state: State, place: DeltaGenerator) -> Drawn | None:
    """Run the sentence, with its place on the page filled all the while; a problem is told in that place."""
    with place.container():
        if not is_loaded(state):
            size = CATALOGUE[state.model].size / 1e6
            st.caption(f"Loading {state.model} ({size:.0f} MB) into memory, once for everybody: some seconds …")
        st.skeleton(height=_HEIGHT)
    try:
        return draw(state)
    except AttentionVizError as error:
        message = str(error)
        place.error(plain(message[:1].upper() + message[1:]))
        return None


def _tell(drawn: Drawn, state: State) -> None:
    """Say what is shown instead of what, what was cut, and what a link can't carry; nothing typed is lost."""
    if drawn.fit is None:
        opening.tell(drawn)
    elif drawn.fit.cut:
        _tell_cut(drawn.fit, state)
    if len(state.text) > SETTINGS.longest_link:
        st.caption("This text is too long for a link: the address leaves it out.")


def _tell_cut(fit: "Fit", state: State) -> None:
    start = " ".join(fit.cut.split())[:80]
    st.warning(
        f"This text has {fit.count:,} tokens, and {state.model} reads {fit.limit:,} at once here. What you typed stays "
        f"in the box; the picture ends before: “{plain(start)} …”"
    )


def _matrix(trace: "Trace", stream: str, state: State) -> None:
    """The chosen head once more as a Plotly figure, to zoom and to read every number."""
    from attention_viz.views import heatmap

    theme: Any = "dark" if st.context.theme.type == "dark" else "light"
    figure = heatmap(trace, state.layer, state.head, stream, theme=theme)
    st.plotly_chart(figure, theme=None, key="matrix", config={"displaylogo": False})
