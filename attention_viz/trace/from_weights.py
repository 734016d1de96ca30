"""An attention call made of weights, for numbers that no call computed but that are read as weights are."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention, attend

__all__ = ["attention_of", "check_computed", "shares"]


def attention_of(
    weights: Float[Tensor, "head query key"], allowed: Bool[Tensor, "... _query _key"] | None = None
) -> Attention:
    """A call whose weights are these: what all pictures and tables know how to show.

    No query and key ever met: their logarithm stands as each head's bias beside queries and keys of 0, and there are no
    values. A cell of 0 that a query may look at stays open, with a bias of −∞.

    Args:
        weights: 0 or more; each row sums to 1, or is 0 throughout.
        allowed: True where a query may look at a key; everywhere by default.
    """
    heads, queries, keys = weights.shape
    looking = torch.zeros(heads, queries, 1, device=weights.device)
    looked = torch.zeros(heads, keys, 1, device=weights.device)
    return attend(looking, looked, looked[..., :0], allowed, scale=1.0, bias=weights.log().float())


def check_computed(call: Attention, what: str) -> None:
    """Refuse what needs queries, keys and values, of a call that was made of weights."""
    if call.value.shape[-1] == 0:
        raise TraceError(
            f"{what} can't be had of weights alone, as of Trace.from_weights, a file of weights, a reading or words "
            "put together: needed are the queries, keys and values that the weights came from (Trace.from_qkv, "
            "av.record, or a model)"
        )


def shares(numbers: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query key"]:
    """Each row divided by its sum, in float64; a row of zeros stays zeros."""
    numbers = numbers.double()
    sums = numbers.sum(dim=-1, keepdim=True)
    return numbers / torch.where(sums > 0, sums, 1)
