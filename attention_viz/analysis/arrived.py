"""Layers with a matrix per channel as one head each: what arrives in all channels."""

from dataclasses import replace

from attention_viz.errors import ShapeError
from attention_viz.trace.given.from_weights import mixer_of_weights
from attention_viz.trace.layers import MixerLayer
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import attach, behind, by_row

__all__ = ["channels_together"]


def channels_together(trace: Trace) -> Trace:
    """Return the trace with each layer that has a matrix per channel as one channel: √Σ ‖weight · value‖² over all.

    Such a layer has thousands of matrices; this is the one picture that leaves nothing out. Only its weights are known.
    """
    mixers = {stream: tuple(map(_together, layers)) for stream, layers in trace.mixers.items()}
    if all(layers == trace.mixers[stream] for stream, layers in mixers.items()):
        return trace
    made = Trace(
        trace.layers,
        trace.queries,
        trace.keys,
        by_row(trace),
        trace.provenance,
        kept=trace.kept,
        seen=trace.seen,
        mixers=mixers,
    )
    return attach(made, behind(trace))


def _together(layer: MixerLayer) -> MixerLayer:
    mixer = layer.mixer
    if mixer.per == "head" or mixer.shape[0] == 1:
        return layer
    try:
        arrived = mixer.layer_contributions.detach()
    except ShapeError:
        # Of merged words only the weights are known, so that no vectors can be added.
        return layer
    made = mixer_of_weights(arrived[None], mixer.kind, "channel")
    if mixer.allowed is None:
        return replace(layer, mixer=made)
    # A cell is blocked if every channel blocks it.
    allowed = mixer.allowed if mixer.allowed.ndim < 3 else mixer.allowed.any(dim=-3, keepdim=True)
    return replace(layer, mixer=replace(made, allowed=allowed))
