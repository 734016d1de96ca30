"""The Cross-attention page's example, controls and slots."""

import functools

import streamlit as st

from attention_viz.serving import permissions as allowed
from attention_viz.sources import of_text
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.controls.wording import streams
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import place_picture
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import SHARED

STREAM = "cross"

# Its head 1 aligns (see the model's card), and both adjectives change places.
EXAMPLE = State(model="translation", text="the tired girl finds the red key", layer=0, head=1, stream=STREAM, target="")
# The explorer's height on a wide screen.
_HEIGHT = 560


def _layout(state: State, _row: ControlRow) -> Slots:
    notes = st.container()
    said = st.container(key="said")
    # The explorer looks for this key: it then tells word by word what heads attend to.
    with st.container(key="cross"), st.container(key="stage", height=_HEIGHT, border=False):
        picture = place_picture(state)
    return Slots(picture, _HEIGHT, {"notes": notes, "said": said, "words": st.container()})


def _offer_example(state: State) -> None:
    able = [f"{name} ({entry.short})" for name, entry in of_text().items() if STREAM in entry.streams]
    what = "The trace in this file" if opening.opened() is not None else allowed.display_name(state.model)
    st.info(
        plain(
            f"{what} has no cross-attention, which needs an encoder–decoder. The catalogue has {', '.join(able)}; you "
            "can open others from a folder or from the hub. Your sentence stays in the box."
        )
    )
    names = ("model", "text", "target", "layer", "head", "stream")
    st.button(
        f"Show {EXAMPLE.model}",
        on_click=functools.partial(visit.pick, SHARED, **{name: getattr(EXAMPLE, name) for name in names}),
        help=f"Runs “{EXAMPLE.text}”. Go back in the browser to restore your sentence.",
    )


PAGE = Page(
    "Cross-attention",
    "cross",
    row=functools.partial(pickers.choose, "Cross-attention", STREAM, with_readings=True),
    layout=_layout,
    example=lambda _: EXAMPLE,
    unfit=lambda state: None if STREAM in streams(state) else functools.partial(_offer_example, state),
)
