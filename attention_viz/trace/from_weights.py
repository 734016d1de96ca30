"""Make an attention call from weights that no call computed."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention, attend


def attention_of(
    weights: Float[Tensor, "head query key"], allowed: Bool[Tensor, "... _query _key"] | None = None
) -> Attention:
    """Make a call for figures and tables from weights whose rows sum to 1 or are all 0.

    Each head's bias is their logarithm; queries and keys are 0, and values have no width. An allowed 0 has bias −∞.
    """
    heads, queries, keys = weights.shape
    looking = torch.zeros(heads, queries, 1, device=weights.device)
    looked = torch.zeros(heads, keys, 1, device=weights.device)
    return attend(looking, looked, looked[..., :0], allowed, scale=1.0, bias=weights.log().float())


def check_computed(call: Attention, what: str) -> None:
    """Refuse a call made from weights alone."""
    if call.value.shape[-1] == 0:
        raise TraceError(
            f"can't compute {what} from weights alone, as of a reading or merged words; make the trace with "
            "Trace.from_qkv, av.record or a model"
        )


def shares(numbers: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query key"]:
    """Divide each row by its sum, in float64; zero rows stay."""
    numbers = numbers.double()
    sums = numbers.sum(dim=-1, keepdim=True)
    return numbers / torch.where(sums > 0, sums, 1)
