"""Similarity of weight rows and of heads."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.signed import mixer_of, signed_shares, signed_weights
from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.token_mixer import shares_of_size
from attention_viz.trace.trace import Trace

__all__ = ["divergence", "head_distances", "similarity"]

# How many rows of a text tell how alike two heads are: each pair of heads is compared. So many heads at most: a layer
# with a matrix per channel has thousands.
_ROWS, _MOST_HEADS = 32, 4096

_TINY = torch.finfo(torch.float64).tiny
_BIT = math.log(2)


def divergence(one: Float[Tensor, "*rows key"], other: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows"]:
    """Return rows' Jensen–Shannon divergence in bits, 0 to 1.

    Source: Lin 1991, "Divergence measures based on the Shannon entropy". What a row lacks of 1 counts as one more key.
    """
    one, other = _whole(one.double()), _whole(other.double())
    middle = ((one + other) / 2).clamp_min(_TINY)
    apart = torch.special.xlogy(one, one / middle) + torch.special.xlogy(other, other / middle)
    return (apart.sum(dim=-1) / (2 * torch.log(torch.tensor(2.0, dtype=torch.float64)))).clamp(0, 1)


def similarity(
    trace: Trace, pattern: Float[Tensor, "query key"], stream: str | None = None
) -> Float[Tensor, "layer head"]:
    """Return each head's similarity to a pattern: 1 − the mean Jensen–Shannon divergence of their rows.

    Args:
        trace: one text's trace. In layers without a softmax, a head's rows are shares of size, signs aside.
        pattern: (query, key), not negative; each row is divided by its sum, and rows of zeros aren't compared.
        stream: the attention type; None for the only one.

    Returns:
        From 0, nothing in common, to 1, equal; NaN for heads that a layer doesn't have. The rows are the layers that
        the trace keeps, `trace.layer_numbers`.

    Raises:
        ShapeError: the pattern has another shape, is negative or not finite, or has only zeros.
    """
    stream = trace.stream(stream)
    shape = (len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
    if tuple(pattern.shape) != shape:
        raise ShapeError(f"the pattern must have the shape (query, key) = {shape}; got {tuple(pattern.shape)}")
    pattern = pattern.double()
    compared = pattern.sum(dim=-1) > 0
    if not bool(torch.isfinite(pattern).all()) or bool((pattern < 0).any()) or not bool(compared.any()):
        raise ShapeError("a pattern must be finite and non-negative, with a number above 0")
    wanted = pattern[compared] / pattern[compared].sum(dim=-1, keepdim=True)
    layers = trace.layer_numbers(stream)
    heads = max(trace.head_count(layer, stream) for layer in layers)
    found = torch.full((len(layers), heads), torch.nan, dtype=torch.float64)
    for row, layer in zip(found, layers, strict=True):
        weights = _rows(trace, stream, layer, compared.nonzero()[:, 0].tolist(), signed=False)
        row[: len(weights)] = 1 - divergence(weights, wanted.expand_as(weights)).mean(dim=-1)
    return found


def head_distances(trace: Trace, stream: str | None = None) -> Float[Tensor, "one other"]:
    """Return head distances: √ of the rows' mean Jensen–Shannon divergence, 0 to 1.

    Padding and special rows are left out; long texts are sampled evenly. Heads in layer order. Rows of layers without a
    softmax are signed shares of size: 0 means that two rows are equal up to a factor above 0.

    Raises:
        TraceError: more than 4,096 heads or channels.
    """
    stream = trace.stream(stream)
    tokens = trace.query_tokens(stream)
    rows = tokens.counted or range(len(tokens))
    chosen = [rows[round(place)] for place in torch.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).tolist()]
    layers = trace.layer_numbers(stream)
    if (count := sum(trace.head_count(layer, stream) for layer in layers)) > _MOST_HEADS:
        raise TraceError(f"comparing each pair needs at most {_MOST_HEADS:,} heads; the {stream} has {count:,}")
    heads = torch.cat([_rows(trace, stream, layer, chosen, signed=True) for layer in layers])
    apart = torch.zeros(len(heads), len(heads), dtype=torch.float64)
    # Row by row, so that what is worked on stays in the processor's cache.
    for row in _whole(heads.double()).unbind(dim=1):
        apart += _apart(row.contiguous())
    return (apart / len(chosen)).sqrt()


def _rows(
    trace: Trace, stream: str, layer: int, rows: list[int], *, signed: bool
) -> Float[Tensor, "head row *one_or_two_keys"]:
    """Return rows that sum to at most 1: weights, or shares of size without a softmax."""
    if stream not in trace.mixers:
        return trace.attention(layer, stream).weights.detach().cpu()[:, rows]
    weights = signed_weights(mixer_of(trace, stream, layer), rows)
    return signed_shares(weights) if signed else shares_of_size(weights)


def _apart(rows: Float[Tensor, "head key"]) -> Float[Tensor, "one other"]:
    """Entropy of the mean less mean entropy."""
    alone = _entropy(rows)
    apart = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for one in range(len(rows) - 1):
        together = _entropy((rows[one] + rows[one + 1 :]).mul_(0.5))
        apart[one, one + 1 :] = (together - (alone[one] + alone[one + 1 :]) / 2).clamp_(0, 1)
    return apart + apart.T


def _whole(rows: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows more"]:
    return torch.cat([rows, (1 - rows.sum(dim=-1, keepdim=True)).clamp_min(0)], dim=-1)


def _entropy(rows: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows"]:
    """In bits."""
    return -torch.special.xlogy(rows, rows).sum(dim=-1) / _BIT
