"""Checks that a model was given, before anything runs."""

from attention_viz.errors import UnsupportedModel
from attention_viz.trace.trace import Trace


def need_model(model: object) -> None:
    """Refuse anything but a model."""
    if isinstance(model, Trace):
        raise UnsupportedModel(
            f"need a model; got a trace of {model.provenance.model}, which doesn't hold the model. "
            "Load it with av.load or av.wrap"
        )
    if not hasattr(model, "facts"):
        raise UnsupportedModel(f"need a model from av.load or av.wrap; got {type(model).__name__}")


def need_trained(model: object) -> None:
    """Refuse anything but a trained model."""
    need_model(model)
    if not getattr(model, "facts").trained:  # noqa: B009 -- what has facts is a model, and which one doesn't matter
        name = getattr(model, "name", "this")
        raise UnsupportedModel(f"{name} has random weights, never trained; load a pretrained model with av.load")
