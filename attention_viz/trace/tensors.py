"""All tensors of one head by name, also as safetensors."""

import json
from collections.abc import Callable, Mapping

from safetensors.torch import save
from torch import Tensor

from attention_viz.trace.trace_data import TraceData

__all__ = ["head_tensors", "to_safetensors"]

_STEPS = ("query", "key", "value", "scores", "scaled", "masked", "weights", "output")


def head_tensors(trace: TraceData, layer: int, head: int, stream: str | None = None) -> dict[str, Tensor]:
    """Return one head's steps in order, each 2-D.

    Returns:
        `query` and `key` (n, d_k), `value` (n, d_v), `scores` query·keyᵀ unscaled, `scaled` before any softcap,
        `masked` with −∞ if blocked, `weights`, `output` (n, d_v); if known, `embeddings` (n, d_model), the layer's
        input, `source` (n, d_model), cross-attention's key and value input, and `joined` (n, d_model), all heads
        projected.
    """
    entry = trace.layer(layer, stream)
    one = entry.attention.head(head)
    around = {"embeddings": entry.embeddings, "source": entry.source, "joined": entry.joined}
    steps = {name: getattr(one, name) for name in _STEPS}
    return steps | {name: tensor for name, tensor in around.items() if tensor is not None}


def to_safetensors(
    trace: TraceData,
    layer: int,
    head: int,
    stream: str | None = None,
    tensors: Callable[[], Mapping[str, Tensor]] | None = None,
) -> bytes:
    """Write one head's steps with provenance and tokens as JSON header.

    Args:
        stream: None for the only one.
        tensors: `head_tensors` by default.
    """
    stream = trace.stream(stream)
    steps = head_tensors(trace, layer, head, stream) if tensors is None else tensors()
    written = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in steps.items()}
    origin = {
        "provenance": {**trace.provenance.as_dict()},
        "stream": stream,
        "layer": layer,
        "head": head,
        "query_tokens": trace.query_tokens(stream).labels,
        "key_tokens": trace.key_tokens(stream).labels,
        "scale": trace.attention(layer, stream).scale,
    }
    return save(written, metadata={name: json.dumps(value) for name, value in origin.items()})
