"""Downloads of a reading, and of its run's tensors."""

import functools

from attention_viz.serving.later import lent
from attention_viz.serving.runs import Run
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.export import head_tensors, to_safetensors
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.files.seen_downloads import instead_of_page, show_seen_downloads

__all__ = ["show_read_downloads"]


def show_read_downloads(drawn: Run, shown: Run, state: State, longest: int = SETTINGS.longest_study) -> None:
    """Draw table, picture, explorer and tensors.

    The tensors are the recorded head's: a reading has no query and key.
    """
    stream, head = drawn.stream(state.stream), readings.head(state)
    if readings.is_raw(state):
        page = instead_of_page(drawn, stream, state.layer, head)
        first = functools.partial(show_seen_downloads, drawn, state)
        later = lent(drawn, state.request, longest)
        show_downloads(drawn.trace, stream, state.layer, head, instead=page, first=first, later=later)
        return
    tensors = {"Tensors (safetensors)": lambda: _tensors(drawn.trace, shown.trace, stream, state)}
    show_downloads(shown.trace, stream, state.layer, head, instead=tensors, run=drawn.trace)


def _tensors(trace: Trace, read: Trace, stream: str, state: State) -> bytes:
    layer, name = state.layer, f"reading_{state.reading}{'_of_words' * (state.words == 'on')}"
    numbers = read.weights(layer, readings.head(state), stream)
    return to_safetensors(
        trace, layer, state.head, stream, lambda: {**head_tensors(trace, layer, state.head, stream), name: numbers}
    )
