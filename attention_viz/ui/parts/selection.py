"""A page's head and pair."""

from typing import NoReturn

import streamlit as st

from attention_viz.serving.runs import Run
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers, reading
from attention_viz.ui.parts.explorer import asked_page, chosen
from attention_viz.ui.parts.menu import PAGES
from attention_viz.ui.selection import SHARED, Clicked, Ran


def ran(run: Run, *, own_head: bool = False) -> Ran:
    """Return a run's facts for a selection."""
    trace = run.trace
    counts = {stream: (len(trace.query_tokens(stream)), len(trace.key_tokens(stream))) for stream in trace.streams}
    # An image is there to be asked about: its own tower's findings come after the words'.
    streams = (run.words,) if run.beside else trace.streams
    return Ran(counts, lambda: None if own_head else next((one for one in run.findings if one.stream in streams), None))


def pair_of(run: Run, state: State) -> tuple[int, int]:
    """Return chosen query and key positions, else the head's."""
    trace, stream = run.trace, run.stream(state.stream)
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    if state.query is not None and state.key is not None and state.query < len(queries) and state.key < len(keys):
        return state.query, state.key
    return run.link(stream, *run.place(stream, state.layer, state.head))


def take_choice() -> None:
    """Send the explorer's choice."""
    choice = chosen()
    if choice is None:
        return
    query, key = (None if (at := choice.get(name)) is None else int(at) for name in ("query", "key"))
    take_head(int(choice["layer"]), int(choice["head"]), choice["stream"], (query, key))


def take_head(
    layer: int, head: int, stream: str | None = None, pair: tuple[int | None, int | None] | None = None
) -> None:
    """Choose a clicked head; merged heads choose none."""
    alone = not reading.together(visit.shared())
    visit.send(Clicked(layer, head if alone else None, stream, pair))


def take_pair(query: int | None, key: int | None) -> None:
    """Choose a pair of positions."""
    visit.pick(SHARED, query=query, key=key)


def show_asked_page() -> None:
    """Go to the explorer's requested page."""
    # A browser may ask for anything.
    page = asked_page()
    if page == "why":
        show_why()
    if page == "silence":
        _turn_to("Heads", silence="on")
    if (file := f"pages/{page}.py") in PAGES.values():
        st.switch_page(file, query_params=pickers.address())


def show_why(token: str = "", against: str = "") -> NoReturn:
    """Explain a next word or the chosen pair's score on the Why page."""
    if token:
        _turn_to("Why", why="word", token=token, against=against)
    _turn_to("Why", why="pair")


def show_steps() -> NoReturn:
    """Show the chosen pair on the Step by step page."""
    _turn_to("Step by step")


def _turn_to(page: str, **asked: str) -> NoReturn:
    visit.here().asked = asked
    st.switch_page(PAGES[page], query_params=pickers.address() | asked)
