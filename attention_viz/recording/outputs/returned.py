"""Picks a model's output from its result."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel

# In this order; else the first tensor of numbers. The last are embeddings of a whole text or picture, or of each token,
# that some models hand out alone; before them what all parts of a model have a part in.
_OUTPUTS = (
    "logits",
    "prediction_logits",
    "last_hidden_state",
    "logits_per_image",
    "logits_per_audio",
    "multimodal_embeddings",
    "transformer_decoder_last_hidden_state",
    "pred_masks",
    "embeddings",
    "text_embeds",
    "image_embeds",
    "audio_embeds",
    "pooler_output",
)
# Those that aren't numbers of tokens or classes, whatever their width.
NO_LOGITS = frozenset(_OUTPUTS) - {"logits", "prediction_logits"} | {"start_logits and end_logits"}


class Returned(NamedTuple):
    """A model's output, (position, width), and its name in the result."""

    name: str
    tensor: Tensor


def output_of(result: Any) -> Tensor:
    """Return logits, else the last hidden state or an embedding: (position, width), or one row per text."""
    return named_output_of(result).tensor


def named_output_of(result: Any) -> Returned:
    """Return the output with its name; see `output_of`. Rows of a batch, tiles and maps come one after the other."""
    name, found = _batch_of(result)
    return Returned(name, found.flatten(0, -2) if found.ndim > 2 else found if found.ndim == 2 else found[None])


def outputs_of(result: Any) -> Tensor:
    """Return a batch's outputs, (row, position, width)."""
    name, found = _batch_of(result)
    if name.startswith("logits_per_"):  # each row's image with its own text, and not with another row's
        found = found.diagonal()[:, None]
    return found.flatten(1, -2) if found.ndim > 2 else found[:, None]


def _batch_of(result: Any) -> Returned:
    found = {name: getattr(result, name, None) for name in ("start_logits", "end_logits")}
    if all(isinstance(tensor, Tensor) for tensor in found.values()):
        both = torch.stack([tensor for tensor in found.values() if tensor is not None], dim=-1)
        return Returned(" and ".join(found), both)
    named = {name: getattr(result, name, None) for name in _OUTPUTS}
    if isinstance(result, tuple):
        named["the first returned value"] = result[0]
    own = dict(result.items()) if isinstance(result, Mapping) else {}
    for name, value in (named | own).items():
        tensor = value[-1] if isinstance(value, list | tuple) and value else value
        if isinstance(tensor, Tensor) and (name in named or tensor.dtype.is_floating_point):
            return Returned(name, tensor)
    raise UnsupportedModel(
        f"the model returns {type(result).__name__}, which has no logits, last hidden state or embedding"
    )
