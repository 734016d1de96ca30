"""Two heads in shares of size, so that weights of layers without a softmax can be compared."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.compare import Comparison

__all__ = ["in_shares"]


def in_shares(comparison: Comparison) -> Comparison:
    """Return a comparison with signed shares of size for weights, if a side has no softmax; else the same.

    A share is a weight over its row's sum of sizes, with the weight's sign. Softmax weights are such shares already.
    """
    if not (comparison.one.mixes or comparison.other.mixes):
        return comparison
    weights, others = (_signed_shares(one) for one in (comparison.weights, comparison.other_weights))
    return replace(comparison, weights=weights, other_weights=others)


def _signed_shares(weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    """Divide each row by its sum of sizes; NaN stays, and so does a row of zeros."""
    whole = weights.nan_to_num().abs().sum(dim=-1, keepdim=True)
    return weights / torch.where(whole > 0, whole, 1)
