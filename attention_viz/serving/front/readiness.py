"""Whether a server is ready: pictures need a model in memory."""

from dataclasses import dataclass

from attention_viz.serving.preload import Preloading
from attention_viz.serving.runs import is_loaded
from attention_viz.sources import CATALOGUE

__all__ = ["Readiness", "readiness"]


@dataclass(frozen=True)
class Readiness:
    """A server's state for monitoring: "ready", "loading", or "failed" (see the log).

    `models` says which shipped ones are in memory.
    """

    state: str
    opens_on: str
    models: dict[str, bool]


def readiness(preloading: Preloading) -> Readiness:
    """Return how far a server's preloading is."""
    loaded = {name: is_loaded(name) for name in CATALOGUE}
    return Readiness(preloading.state, preloading.request.model, loaded)
