"""A trained head with its values in a plane."""

from dataclasses import replace

import torch

from attention_viz.operation.shapes import shared_heads
from attention_viz.trace.trace import Layer, Trace

__all__ = ["in_a_plane"]

_NUMBERS = 2


def in_a_plane(trace: Trace, layer: int, head: int) -> tuple[Trace, float]:
    """Project one head's values to their two directions of largest variance.

    Projection is linear: weights stay as they ran, outputs remain mixtures.

    Returns:
        The trace, and the variance kept, 0 to 1; 1 if nothing varies.
    """
    call = trace.attention(layer)
    value = shared_heads(call.value, call.query)[head].detach().double().cpu()
    centred = value - value.mean(dim=0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    plane = torch.zeros(len(value), _NUMBERS, dtype=torch.float64)
    seen = directions[:_NUMBERS]
    plane[:, : len(seen)] = centred @ seen.mT
    one = call.head(head)
    flat = replace(one, query=one.query[None], key=one.key[None], value=plane[None].to(one.query))
    variance = sizes.square()
    share = float(variance[:_NUMBERS].sum() / variance.sum()) if float(variance.sum()) else 1.0
    origin = replace(trace.provenance, revision=f"{trace.provenance.revision} layer {layer} head {head} in a plane")
    (stream,) = trace.streams
    layers = {stream: (Layer(flat, "0", None),)}
    return Trace(layers, trace.queries, trace.keys, flat.output[0], origin), share
