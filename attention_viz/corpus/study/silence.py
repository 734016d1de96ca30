"""What becomes of what a model says when one head is silent, on one text."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.models.patching.batched_edits import rows_at_once, try_each
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["loss_of", "measure_of", "silenced"]

# What silencing moves: of a decoder that chooses words the loss, of an encoder its embedding.
_LOSS, _EMBEDDING = "loss", "embedding"


def measure_of(model: AttentionModel) -> str:
    """What is compared: "loss" of a model that chooses each next word, "embedding" of one that embeds a text."""
    if model.facts.continues_text:
        return _LOSS
    if tuple(model.heads) == ("encoder",) and not model.facts.predicts:
        return _EMBEDDING
    raise UnsupportedModel(
        f"{model.name} neither goes on with a text nor embeds one, so nothing says what becomes of it without a head"
    )


def silenced(
    model: AttentionModel, before: Trace, heads: Sequence[tuple[int, int]], report: Callable[[int], object]
) -> "NDArray[Any]":
    """What silencing each head by itself, everywhere, changes: the loss by so many nats a token, or the embedding.

    An embedding is the mean of the last layer over the text, and its change is 1 − the cosine between before and after.

    Args:
        report: told before each batch how many heads are done; what it raises stops the work.
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
    """How many nats the words of a text cost, on average over those that have one before them."""
    ids = torch.tensor(run.query_tokens().numbers)[1:]
    return float(torch.nn.functional.cross_entropy(output[:-1].double().cpu(), ids))


def _apart(before: Trace, output: Float[Tensor, "position width"]) -> float:
    one, other = (rows.double().cpu().mean(dim=0) for rows in (before.output, output))
    return float(1 - torch.nn.functional.cosine_similarity(one, other, dim=0))
