"""Import page bodies with torch, transformers and plotly, once for everybody."""

from collections.abc import Generator
from contextlib import contextmanager

from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving.imports import one_importer
from attention_viz.ui.address import State
from attention_viz.ui.parts.drawing import hold

__all__ = ["importing"]

# Pages whose bodies are imported whole.
READY: set[str] = set()


@contextmanager
def importing(page: str, state: State | None, place: DeltaGenerator | None, height: int) -> Generator[None]:
    """Import a page's body, one thread at a time, with its slot filled.

    Args:
        state: None without one model.
        place: None if its content stays.
        height: in pixels.
    """
    if page not in READY and place is not None:
        hold(state, place, height)
    with one_importer:
        yield
    READY.add(page)
