"""What a visitor has chosen of what all pages share, taken along from page to page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.ui.address.codec import modernised
from attention_viz.ui.address.session import Choices
from attention_viz.ui.address.state import State, opened_on, own_example

__all__ = ["SHARED", "begin_page", "hold_head", "hold_stream", "untouched_head", "untouched_stream"]

# Kept for a visit: the layer and the head that nobody chose.
_HELD = "held-head"
# The same of the kind of attention.
_HELD_STREAM = "held-stream"

SHARED = Choices(State(), "", "shared")


def begin_page(own: Sequence[Choices[Any]] = (), example: State | None = None) -> None:
    """Take what the address asks for at a visitor's first run of a page and after Back or Forward.

    Args:
        own: what the page keeps in the address beside what all pages share.
        example: what the page opens on that has an example of its own, where the address names no other model.
    """
    address = modernised([type(one.default) for one in own], st.query_params.to_dict())
    for one in own:
        one.begin(address)
    # On another page Streamlit empties a text that nobody edited.
    context = get_script_run_ctx()
    page = None if context is None else context.page_script_hash
    if not SHARED.unseen and st.session_state.get("page", page) != page:
        SHARED.restore()
    st.session_state["page"] = page
    if SHARED.begin(address):
        model = address.get("model", (example or SHARED.default).model)
        theirs = example is None or model != example.model
        own_default = replace(SHARED.default, text=own_example(model), **opened_on(model))
        SHARED.settle(default=own_default if theirs else example)
        if example is not None:
            SHARED.adjust(stream=example.stream)


def hold_head(layer: int, head: int) -> None:
    """Remember a head that nobody chose by hand: another text may open on another."""
    st.session_state[_HELD] = layer, head


def untouched_head() -> bool:
    """Whether the head that is shown was chosen by nobody, neither by hand nor by a link."""
    return st.session_state.get(_HELD) == (SHARED.current().layer, SHARED.current().head)


def hold_stream(stream: str | None) -> None:
    """Remember a kind of attention that nobody chose: the best finding may be in another; None once somebody chose."""
    st.session_state[_HELD_STREAM] = stream


def untouched_stream() -> bool:
    """Return whether the kind of attention that is shown was chosen by nobody, neither by hand nor by a link."""
    return st.session_state.get(_HELD_STREAM) == SHARED.current().stream
