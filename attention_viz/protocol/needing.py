"""Refuses, before anything runs, what asks a model and was given something else."""

from attention_viz.errors import UnsupportedModel
from attention_viz.trace.trace import Trace


def need_model(model: object) -> None:
    """Nothing, if this is a model."""
    if isinstance(model, Trace):
        raise UnsupportedModel(
            f"a model is needed here; a trace of {model.provenance.model} was given, which doesn't hold the model: "
            "load the model by av.load or av.wrap"
        )
    if not hasattr(model, "facts"):
        raise UnsupportedModel(f"a model is needed here, from av.load or av.wrap; got {type(model).__name__}")


def need_trained(model: object) -> None:
    """Nothing, if this is a model whose weights were learnt."""
    need_model(model)
    if not getattr(model, "facts").trained:  # noqa: B009 -- what has facts is a model, and which one doesn't matter
        name = getattr(model, "name", "this")
        raise UnsupportedModel(f"{name} is our own module: nobody trained its random weights to say anything")
