"""The effect of ablating one head on one text."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.recording.batches.batched_edits import rows_at_once, try_each
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Ablation changes the loss of a decoder that chooses words, and the embedding of an encoder.
_LOSS, _EMBEDDING = "loss", "embedding"


def measure_of(model: AttentionModel) -> str:
    """Return "loss" for next-word models, "embedding" for text embedders."""
    if model.facts.continues_text:
        return _LOSS
    if tuple(model.heads) == ("encoder",) and not model.facts.predicts:
        return _EMBEDDING
    raise UnsupportedModel(
        f"can't measure ablations of {model.name}: it neither predicts a next token nor embeds texts"
    )


def silenced(
    model: AttentionModel, before: Trace, heads: Sequence[tuple[int, int]], report: Callable[[int], object]
) -> "NDArray[Any]":
    """Return each single ablation's effect: loss in nats per token, or embedding.

    An embedding is the last layer's mean; its change is 1 − the cosine.

    Args:
        report: called before each batch with heads done; raising stops the work.
    """
    measure = _loss if measure_of(model) == _LOSS else _apart
    found, size = list[float](), rows_at_once(before)
    for start in range(0, len(heads), size):
        report(start)
        outputs = try_each(model, before, [[Ablate(*head)] for head in heads[start : start + size]])
        found += [measure(before, output) for output in outputs]
    return numpy.array(found)


def _loss(before: Trace, output: Float[Tensor, "position vocabulary"]) -> float:
    return loss_of(before, output) - loss_of(before, before.output)


def loss_of(run: Trace, output: Float[Tensor, "position vocabulary"]) -> float:
    """Return the mean loss, in nats, of words that follow another."""
    ids = torch.tensor(run.query_tokens().numbers)[1:]
    return float(torch.nn.functional.cross_entropy(output[:-1].double().cpu(), ids))


def _apart(before: Trace, output: Float[Tensor, "position width"]) -> float:
    one, other = (rows.double().cpu().mean(dim=0) for rows in (before.output, output))
    return float(1 - torch.nn.functional.cosine_similarity(one, other, dim=0))
