"""Whether a server is ready: it answers from its first second, but pictures come once a model is in memory."""

from dataclasses import dataclass

from attention_viz.models import CATALOGUE
from attention_viz.serving.preload import Preloading
from attention_viz.serving.runs import is_loaded

__all__ = ["Readiness", "readiness"]


@dataclass(frozen=True)
class Readiness:
    """What whoever watches a server asks.

    Attributes:
        state: "ready", "loading", or "failed" where the model that the app opens on can't be had; the log says why.
        models: each of the models that ship, and whether it is in memory.
    """

    state: str
    opens_on: str
    models: dict[str, bool]


def readiness(preloading: Preloading) -> Readiness:
    """How far a server is that began with loading a model."""
    loaded = {name: is_loaded(name) for name in CATALOGUE}
    return Readiness(preloading.state, preloading.request.model, loaded)
