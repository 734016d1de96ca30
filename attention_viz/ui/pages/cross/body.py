"""The Cross-attention page's body: what an encoder–decoder says, and which word of the source each step looks at."""

import functools

from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.runs import Drawn
from attention_viz.serving.verifying import verify
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.pages.cross.places import HEIGHT, Places
from attention_viz.ui.pages.cross.words import show_alignment, show_target
from attention_viz.ui.parts.drawing import draw_in_place, show_notes
from attention_viz.ui.parts.explorer import show_explorer
from attention_viz.ui.parts.files.reading_downloads import show_read_downloads
from attention_viz.ui.parts.readings import read_in_place, show_reading
from attention_viz.ui.parts.selection import settle_selection, show_asked_page, take_choice
from attention_viz.ui.presenting.host import present_findings

__all__ = ["show_body"]

_STREAM = "cross"


def show_body(state: State, places: Places) -> None:
    """Run the sentence and fill the places.

    Args:
        state: what the pickers say, of the cross-attention.
        places: from `hold_places`.
    """
    settle = functools.partial(settle_selection, state=state)
    drawn = draw_in_place(state, places.explorer.place, HEIGHT, whole=True, stays=places.explorer.stays, settle=settle)
    if drawn is None:
        places.line.empty()
        return
    show_asked_page()
    with places.notes:
        show_notes(drawn, state, rows=False)
    with places.beside.container(key="said"):
        show_target(drawn.trace)
    shown = read_in_place(drawn, state, places.explorer.place, HEIGHT)
    if shown is not None:
        with places.beside.container(key="alignment"):
            show_alignment(shown.trace, state.layer, state.head)
        _show(shown, state, places.explorer.picture())
        present_findings(shown.alone(_STREAM), state)
        with places.downloads:
            show_read_downloads(drawn, shown, state)
    show_reading(shown, state)
    if drawn.fit is not None:
        verify(drawn)
    places.badge.show(drawn.trace, from_file=drawn.fit is None)


def _show(drawn: Drawn, state: State, place: DeltaGenerator) -> None:
    """The explorer, with nothing in it but what this page is about."""
    shown = drawn.alone(state.stream) if drawn.trace.seen.sound is None else drawn.part(_STREAM)
    with place:
        pair = (state.query, state.key)
        show_explorer(shown, _STREAM, state.layer, reading.head(state), take_choice, pair=pair)
