"""The model that the app opens on is loaded when the server starts, so that the first visitor doesn't wait for it."""

import gc
import importlib
import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from attention_viz.errors import AttentionVizError
from attention_viz.serving.imports import one_importer
from attention_viz.serving.request import Request
from attention_viz.serving.runs import draw, load_model
from attention_viz.serving.verifying import verify

__all__ = ["begin"]

_log = logging.getLogger(__name__)


def begin(request: Request, modules: Sequence[str] = ()) -> threading.Thread:
    """Import what is heavy, load a model, run and compare a text, in a thread of its own; who asks waits for the same.

    What goes wrong is logged and no more: whoever asks for the model is told.

    Args:
        request: the model, by its name in the catalogue, and the text.
        modules: what else to import, in this order.
    """
    thread = threading.Thread(
        target=_run, args=(request, tuple(modules)), name=f"preloading of {request.model}", daemon=True
    )
    thread.start()
    return thread


def _run(request: Request, modules: tuple[str, ...]) -> None:
    try:
        with one_importer, _without_collecting():
            importlib.import_module("attention_viz.models.sources.load_folder")
        load_model(request.model)
        with one_importer:
            for module in modules:
                importlib.import_module(module)
        drawn = draw(request)
        _ = drawn.payload  # what is looked at first
        verify(drawn)
    except AttentionVizError as error:
        _log.warning("%s was not loaded beforehand: %s", request.model, error)


@contextmanager
def _without_collecting() -> Generator[None]:
    """Python looks for garbage again and again among the million objects that imports make: a sixth of their time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
