"""Which of the things that a model returns is its output."""

from typing import Any

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel

__all__ = ["output_of", "outputs_of"]

# In this order. The last are embeddings of a whole text, or of each token, that some models hand out alone.
_OUTPUTS = ("logits", "prediction_logits", "last_hidden_state", "embeddings", "text_embeds", "pooler_output")


def output_of(result: Any) -> Tensor:
    """Logits where the model has a head, else the last hidden state or an embedding; (position, width), no batch axis.

    A head that says one thing of the whole text gives one row.
    """
    found = _batch_of(result)
    return found[0] if found.ndim > 2 else found


def outputs_of(result: Any) -> Tensor:
    """The same of every row of a batch: (row, position, width)."""
    found = _batch_of(result)
    return found if found.ndim > 2 else found[:, None]


def _batch_of(result: Any) -> Tensor:
    found = {name: getattr(result, name, None) for name in ("start_logits", "end_logits")}
    if all(isinstance(tensor, Tensor) for tensor in found.values()):
        return torch.stack([tensor for tensor in found.values() if tensor is not None], dim=-1)
    first = result[0] if isinstance(result, tuple) else None
    for tensor in (*(getattr(result, name, None) for name in _OUTPUTS), first):
        if isinstance(tensor, Tensor):
            return tensor
    raise UnsupportedModel(
        f"the model returns {type(result).__name__}, with neither logits, nor a last hidden state, nor an embedding"
    )
