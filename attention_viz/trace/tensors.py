"""Every tensor of one head by name, from what enters the layer to what leaves it, and as a safetensors file."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safetensors.torch import save
from torch import Tensor

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["head_tensors", "to_safetensors"]

_STEPS = ("query", "key", "value", "scores", "scaled", "masked", "weights", "output")


def head_tensors(trace: "Trace", layer: int, head: int, stream: str | None = None) -> dict[str, Tensor]:
    """The steps of one head, each 2-D, in the order in which they follow from each other.

    Returns:
        `query` and `key` (n, d_k), `value` (n, d_v), `scores` query·keyᵀ unscaled, `scaled` before any softcap,
        `masked` with −∞ where blocked, `weights`, `output` (n, d_v); and where known `embeddings` (n, d_model), what
        enters the layer, `source` (n, d_model), what keys and values are made of in cross-attention, and `joined`
        (n, d_model), all heads joined and projected.
    """
    entry = trace.layer(layer, stream)
    one = entry.attention.head(head)
    around = {"embeddings": entry.embeddings, "source": entry.source, "joined": entry.joined}
    steps = {name: getattr(one, name) for name in _STEPS}
    return steps | {name: tensor for name, tensor in around.items() if tensor is not None}


def to_safetensors(
    trace: "Trace",
    layer: int,
    head: int,
    stream: str | None = None,
    tensors: Callable[[], Mapping[str, Tensor]] | None = None,
) -> bytes:
    """The steps of one head as a safetensors file, with their origin and tokens as JSON in its header.

    Args:
        stream: which stream; None for the only one there is.
        tensors: gives what to write; `head_tensors` of that head by default.
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
