"""The explorer of a trace, as a widget where there are widgets."""

import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from attention_viz.explorer.page import Explorer, ExplorerPage, opening_of
from attention_viz.trace.ahead import Progress

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["explore"]


def explore(
    trace: "Trace",
    *,
    stream: str | None = None,
    layer: int | None = None,
    head: int = 0,
    theme: Literal["auto", "light", "dark"] = "auto",
    layers: Collection[int] | None = None,
    progress: Progress | None = None,
) -> Explorer:
    """Show a trace: arcs over its tokens, the grid of all heads, and one head as a matrix.

    A long text, with more than some sixty million weights, includes the numbers of some layers only: their heads'
    queries and keys, and one normaliser per row. The browser computes every weight from these, exact to 1e-5. The other
    heads have a thumbnail. Work of more than ten seconds reports its size, expected time and progress on standard
    error.

    Args:
        trace: the trace, with all its streams, layers and heads.
        stream: the stream to open on; by default the first, or the words' beside an image. "mixer" has the layers
            without a softmax.
        layer: the layer to open on; by default the first kept one.
        head: the head to open on.
        theme: "light", "dark", or "auto" for the reader's system setting.
        layers: for a long text, the layers of that stream to include numbers of; by default the one it opens on.
            For 8,000 tokens, a layer of nine heads with d_k 64 takes some 25 MB.
        progress: called with the finished share, from 0 to 1, after each layer, instead of lines on standard error; its
            exceptions stop the work.

    Raises:
        TraceError: the stream or layer doesn't exist, or the layer isn't kept.
        ShapeError: the head doesn't exist.
        ValueError: the theme doesn't exist.
    """
    opening = opening_of(trace, stream=stream, layer=layer, head=head, theme=theme, layers=layers, progress=progress)
    if not has_widgets():
        return ExplorerPage(trace, opening)
    from attention_viz.explorer.widgets.explorer import ExplorerWidget

    return ExplorerWidget(trace, opening)


def has_widgets() -> bool:
    """Return whether anywidget, the extra `notebook`, can be imported."""
    try:
        importlib.import_module("anywidget")
    except ImportError:
        return False
    return True
