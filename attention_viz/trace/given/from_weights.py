"""Make a call from weights that no call computed, and check what a call or stream has."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.token_mixer import MixerKind, TokenMixer
from attention_viz.trace.trace_data import TraceData


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


def mixer_of_weights(
    weights: Float[Tensor, "head query key"], kind: MixerKind, per: Literal["head", "channel"]
) -> TokenMixer:
    """Make a mixer from signed weights; its values have no width."""
    heads, queries, keys = weights.shape
    reading, read = weights.new_ones(1, queries, 1), weights.new_ones(1, keys, 1)
    value = weights.new_empty(heads, keys, 0)
    return TokenMixer(kind, reading, read, value, factor=weights, per=per)


def check_computed(call: Attention, what: str) -> None:
    """Refuse a call made from weights alone."""
    if call.value.shape[-1] == 0:
        raise TraceError(
            f"can't compute {what} from weights alone, as of a reading or merged words; make the trace with "
            "Trace.from_qkv, av.record or a model"
        )


def softmax_stream(trace: TraceData, name: str | None, what: str) -> str:
    """Return a stream's name; refuse one without a softmax for a computation that needs it.

    Raises:
        TraceError: the stream has no softmax, is missing, or there are several and none was named.
    """
    if trace.stream(name) in trace.mixers:
        raise TraceError(f"{what} needs a softmax, whose rows sum to 1; the layers of {name or 'this trace'} have none")
    return trace.stream(name)


def shares(numbers: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query key"]:
    """Divide each row by its sum, in float64; zero rows stay."""
    numbers = numbers.double()
    sums = numbers.sum(dim=-1, keepdim=True)
    return numbers / torch.where(sums > 0, sums, 1)


def weights_alone(rows: Sequence[Tensor]) -> str:
    """Name the reference of weights that came without queries and keys, with the distance of their sums from 1."""
    sums = [one.double().sum(dim=-1) for one in rows]
    far = max(float(torch.where(one == 0, 0, one - 1).abs().max()) for one in sums)
    return f"the weights as they came, whose rows sum to 1 within {far:.0e}; no queries and keys to compare with"
