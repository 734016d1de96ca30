"""The head, and the pair of tokens in it, that a page opens on, keeps, and hands on to the other pages."""

from typing import Any, NoReturn

import streamlit as st

from attention_viz.serving.runs import Drawn
from attention_viz.ui.address import State
from attention_viz.ui.address.session import went_through_history
from attention_viz.ui.address.shared import SHARED, hold_stream, untouched_stream
from attention_viz.ui.controls import pickers, reading
from attention_viz.ui.parts.explorer import asked_page, chosen
from attention_viz.ui.parts.menu import ASKED_SILENCE, ASKED_WHY, PAGES

__all__ = ["pair_of", "settle_selection", "settled", "show_asked_page", "show_why", "take_choice", "take_pair"]

# Kept for a visit: which run the selection is of.
_OF = "selection-of"


def settle_selection(drawn: Drawn, state: State, *, own_head: bool = False) -> None:
    """Have a new text open on its best finding, and let go of a pair that it doesn't have.

    Layer and head stay where somebody chose them by hand or by a link; one on which another page opened by itself gives
    way to the finding. Where something else is chosen now, the page runs again from its beginning.

    Args:
        drawn: what ran.
        state: what the pickers say.
        own_head: whether the page has a head of its own to open on, as long as nobody chose one.
    """
    of = _of(drawn, state)
    before = st.session_state.get(_OF)
    st.session_state[_OF] = of
    # What a link or somebody chose for a visit's first text stays.
    by_nobody = pickers.untouched_head()
    seen = before == of and (own_head or not by_nobody or state.query is not None)
    if seen or (before is None and not by_nobody) or went_through_history():
        _let_go(drawn, state)
        return
    by_hand = drawn.fit is not None and not by_nobody
    if by_hand or not drawn.findings:
        _choose(state, query=None, key=None)
        return
    best = drawn.findings[0]
    pickers.hold_head(best.layer, best.head)
    several = len(drawn.trace.streams) > 1
    untouched = state.stream is None or untouched_stream()
    if several and state.stream != best.stream and not untouched:
        return
    stream = best.stream if several else state.stream
    if untouched:
        hold_stream(stream)
    _choose(state, layer=best.layer, head=best.head, stream=stream, query=None, key=None)


def settled(drawn: Drawn, state: State) -> bool:
    """Whether a page has shown this run already, with the head that it opened on.

    Args:
        drawn: what ran.
        state: what the pickers say.
    """
    return st.session_state.get(_OF) == _of(drawn, state)


def _of(drawn: Drawn, state: State) -> tuple[object, ...]:
    texts = (state.model, state.shown or state.text, state.second, state.target, state.more, state.special, state.chat)
    return (*texts, None if drawn.fit is not None else id(drawn))


def _let_go(drawn: Drawn, state: State) -> None:
    """Let go of a pair of positions that the text doesn't have."""
    stream = drawn.stream(state.stream)
    counts = (len(drawn.trace.query_tokens(stream)), len(drawn.trace.key_tokens(stream)))
    places = zip((state.query, state.key), counts, strict=True)
    if any(place is not None and place >= count for place, count in places):
        _choose(state, query=None, key=None)


def _choose(state: State, **values: Any) -> None:
    if any(getattr(state, name) != value for name, value in values.items()):
        # The pickers are drawn already: they hear of it at the beginning of the next run.
        pickers.choose_next(**values)
        st.rerun()


def pair_of(drawn: Drawn, state: State) -> tuple[int, int]:
    """The positions of the query and the key that are told of the head: those chosen, else the head's own.

    Args:
        drawn: what ran, with the stream that is shown.
        state: what the pickers say.
    """
    trace, stream = drawn.trace, drawn.stream(state.stream)
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    if state.query is not None and state.key is not None and state.query < len(queries) and state.key < len(keys):
        return state.query, state.key
    return drawn.link(stream, *drawn.place(stream, state.layer, state.head))


def take_choice() -> None:
    """What was chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is None:
        return
    pair = (choice.get("query"), choice.get("key"))
    take_pair(*(None if one is None else int(one) for one in pair))
    st.session_state["layer"], st.session_state["stream"] = int(choice["layer"]), choice["stream"]
    reading.take_head(int(choice["head"]))


def take_pair(query: int | None, key: int | None) -> None:
    """Choose a pair of positions."""
    SHARED.set(query=query, key=key)


def show_asked_page() -> None:
    """Go to the page that was asked for in the explorer, with what is chosen there."""
    # A browser may ask for anything.
    page = asked_page()
    if page == "why":
        show_why()
    if page == "silence":
        st.session_state[ASKED_SILENCE] = True
        st.switch_page(PAGES["Heads"], query_params=pickers.address() | {"silence": "on"})
    if (file := f"pages/{page}.py") in PAGES.values():
        st.switch_page(file, query_params=pickers.address())


def show_why(token: str = "", against: str = "") -> NoReturn:
    """Go to the page that opens a number: of a next word, or else the score of the pair that is chosen.

    Args:
        token: the word that is asked about.
        against: the word that it is told against; empty for a likely one.
    """
    asked = {"why": "word", "token": token, "against": against} if token else {"why": "pair"}
    st.session_state[ASKED_WHY] = asked
    st.switch_page(PAGES["Why"], query_params=pickers.address())
