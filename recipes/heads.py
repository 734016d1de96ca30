"""What a head looks at, and what becomes of a model without it."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from recipes.training import Batch

__all__ = ["attention_of", "looked_at", "output_slice", "rate_without", "weights", "without_head"]


def output_slice(projection: nn.Module, head: int, heads: int) -> Tensor:
    """The part of W_O that reads one head's output; a view, so writing to it changes the model."""
    matrix = projection.weight
    assert isinstance(matrix, Tensor)
    axis = 0 if isinstance(projection, Conv1D) else 1
    width = matrix.shape[axis] // heads
    return matrix.narrow(axis, head * width, width)


@contextmanager
def without_head(projection: nn.Module, head: int, heads: int) -> Generator[None]:
    """While this lasts, nothing of what the head computes reaches the rest of the model."""
    with torch.no_grad():
        part = output_slice(projection, head, heads)
        kept = part.clone()
        part.zero_()
        try:
            yield
        finally:
            part.copy_(kept)


def attention_of(model: PreTrainedModel) -> str:
    """The name of the function that computes a model's attention."""
    return str(vars(model.config)["_attn_implementation_internal"])


@torch.no_grad()
def weights(model: PreTrainedModel, batch: Batch, kind: str = "attentions") -> Tensor:
    """Every head's attention weights, (layer, head, row, query, key), from a run with plain attention.

    Args:
        kind: "attentions"; of an encoder–decoder "encoder_attentions" or "cross_attentions".
    """
    usual = attention_of(model)
    model.set_attn_implementation("eager")
    try:
        layers: Sequence[Tensor] = model(**batch, output_attentions=True)[kind]
    finally:
        model.set_attn_implementation(usual)
    return torch.stack(tuple(layers)).transpose(1, 2)


def looked_at(every: Tensor, rows: Tensor, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """How often and how strongly each head looks where it should.

    Returns:
        The share of links that got the heaviest weight of their query, and the mean weight; both (layer, head).
    """
    seen = every[:, :, rows, queries]
    right = seen.argmax(-1) == keys
    weight = seen.gather(-1, keys.expand(seen.shape[:-1])[..., None])[..., 0]
    return right.float().mean(-1), weight.mean(-1)


def rate_without(rate: Callable[[], float], projections: Sequence[nn.Module], heads: int) -> Tensor:
    """What a rate becomes when a head is taken away: one entry for each, (layer, head)."""
    rates = torch.empty(len(projections), heads)
    for layer, projection in enumerate(projections):
        for head in range(heads):
            with without_head(projection, head, heads):
                rates[layer, head] = rate()
    return rates
