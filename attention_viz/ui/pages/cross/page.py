"""The Cross-attention page before anything heavy is there: header, pickers, and a place for each part that follows."""

from dataclasses import replace

import streamlit as st

from attention_viz.models import of_text
from attention_viz.serving import permissions as allowed
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.target import streams
from attention_viz.ui.pages.cross.places import HEIGHT, hold_places
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.importing import importing
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import show_header

__all__ = ["EXAMPLE", "show_page"]

_STREAM = "cross"

# Its head 1 aligns: see the model's card.
EXAMPLE = State(
    model="translation", text="the boy finds the key and he sells it", layer=0, head=1, stream=_STREAM, target=""
)


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place held."""
    pickers.begin(example=EXAMPLE)
    show_header()
    row = pickers.choose("Cross-attention", _STREAM, with_readings=True)
    state = row.state
    pickers.keep(state)
    if _STREAM not in streams(state):
        _offer_example(state)
        return
    places = hold_places(state, row.bar)
    with importing("cross", state, places.explorer.to_fill(), HEIGHT):
        from attention_viz.ui.pages.cross.body import show_body
    show_body(replace(state, stream=_STREAM), places)


def _offer_example(state: State) -> None:
    """Say in the page's place why there is nothing to see, and how to see something."""
    able = [f"{name} ({entry.short})" for name, entry in of_text().items() if _STREAM in entry.streams]
    what = "The trace in this file" if opening.opened() is not None else allowed.display_name(state.model)
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
        help="The browser's Back brings your sentence back.",
    )


def _take_example() -> None:
    opening.close()
    for name in ("model", "text", "target", "layer", "head", "stream"):
        st.session_state[name] = getattr(EXAMPLE, name)
