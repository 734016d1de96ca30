"""The wait for a page's body: torch, transformers and plotly come with it, once for everybody."""

from collections.abc import Generator
from contextlib import contextmanager

from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.imports import one_importer
from attention_viz.ui.address import State
from attention_viz.ui.parts.drawing import hold

__all__ = ["importing"]

# Pages whose bodies are imported whole.
_ready: set[str] = set()


@contextmanager
def importing(page: str, state: State | None, place: DeltaGenerator | None, height: int) -> Generator[None]:
    """Import a page's body in here: one thread at a time, with its place on the page filled all the while.

    Args:
        state: what the pickers say; None where the page shows no one model.
        place: an `st.empty`; None where something stands there that is to stay.
        height: of what will be drawn there, in pixels.
    """
    if page not in _ready and place is not None:
        hold(state, place, height)
    with one_importer:
        yield
    _ready.add(page)
