"""Load the opening model at server start, so that no visitor waits, and report its state."""

import gc
import importlib
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from attention_viz.errors import AttentionVizError
from attention_viz.models.loading.verdicts import prepare
from attention_viz.serving.imports import one_importer
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, is_loaded, load_model, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.verifying import verify
from attention_viz.sources import CATALOGUE

_log = logging.getLogger(__name__)


class Preloading(threading.Thread):
    """A thread that loads a catalogue model and runs a text."""

    def __init__(self, request: Request, warm: Callable[[Run], object], modules: Sequence[str]) -> None:
        """Prepare the thread."""
        super().__init__(name=f"preloading of {request.model}", daemon=True)
        self.request, self._warm, self._modules, self._done = request, warm, tuple(modules), False

    @property
    def state(self) -> str:
        """The state: "loading", "ready" or "failed"."""
        return "ready" if self._done else "loading" if self.is_alive() else "failed"

    def run(self) -> None:
        """Load and run; log errors."""
        try:
            _load(self.request, self._warm, self._modules)
            self._done = True
        except AttentionVizError as error:
            _log.warning("Could not preload %s: %s", self.request.model, error)
        # Only now: another process that imports torch would have delayed the first visitors.
        if SETTINGS.models or SETTINGS.hub:
            prepare()


@dataclass(frozen=True)
class Readiness:
    """A server's state, "ready", "loading" or "failed", and the shipped models in memory."""

    state: str
    opens_on: str
    models: dict[str, bool]


def readiness(preloading: Preloading) -> Readiness:
    """Return the state of a server's preloading."""
    loaded = {name: is_loaded(name) for name in CATALOGUE}
    return Readiness(preloading.state, preloading.request.model, loaded)


def begin(request: Request, warm: Callable[[Run], object] = lambda _: None, modules: Sequence[str] = ()) -> Preloading:
    """Import, load, run and compare in the background; errors reach the visitors who request the model."""
    preloading = Preloading(request, warm, modules)
    preloading.start()
    return preloading


def _load(request: Request, warm: Callable[[Run], object], modules: Sequence[str]) -> None:
    with one_importer, _without_collecting():
        importlib.import_module("attention_viz.models.loading.load_folder")
    load_model(request.model)
    with one_importer:
        for module in modules:
            importlib.import_module(module)
    run = run_request(request)
    warm(run)
    verify(run)


@contextmanager
def _without_collecting() -> Generator[None]:
    """Pause garbage collection, which takes a sixth of the time among a million imported objects."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
