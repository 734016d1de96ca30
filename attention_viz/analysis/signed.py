"""Rows of layers without a softmax: signed weights, and their shares of size."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.operation.token_mixer import TokenMixer, shares_of_size
from attention_viz.trace.trace import Trace

# Weights that are made at a time, and heads or channels whose recurrence runs together: 32 MiB.
AT_ONCE, _TOGETHER = 2**23, 128


class SignedRows(NamedTuple):
    """Some rows of some heads or channels of one layer."""

    heads: tuple[int, ...]
    rows: tuple[int, ...]
    weights: Float[Tensor, "head row key"]


def signed_rows(mixer: TokenMixer, rows: Sequence[int]) -> Iterator[SignedRows]:
    """Yield rows' signed weights in float32, some heads and rows at a time: all rows of a head before the next."""
    heads, queries, keys = mixer.shape
    step = max(1, AT_ONCE // max(1, keys))
    together = max(1, min(_TOGETHER, AT_ONCE // max(1, min(len(rows), step) * keys)))
    for first in range(0, heads, together):
        some = mixer.heads(slice(first, first + together))
        for start in range(0, max(1, len(rows)), step):
            chosen = tuple(rows[start : start + step])
            call = some if chosen == tuple(range(queries)) else some.rows(chosen)
            weights = call.weights.detach().float().cpu() if chosen else torch.zeros(some.shape[0], 0, keys)
            yield SignedRows(tuple(range(first, first + len(weights))), chosen, weights)


def signed_weights(mixer: TokenMixer, rows: Sequence[int]) -> Float[Tensor, "head row key"]:
    """Return rows' signed weights in all heads."""
    return torch.cat([weights for _, weights in by_heads(signed_rows(mixer, rows))])


def by_heads(parts: Iterable[SignedRows]) -> Iterator[tuple[tuple[int, ...], Float[Tensor, "head row key"]]]:
    """Join the rows of each head."""
    for heads, some in groupby(parts, key=lambda part: part.heads):
        yield heads, torch.cat([part.weights for part in some], dim=1)


def signed_shares(weights: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows two_key"]:
    """Return shares of size with each key twice: once if its value is carried, once if it is taken away."""
    parts = torch.cat([weights.clamp_min(0), (-weights).clamp_min(0)], dim=-1)
    return shares_of_size(parts)


def carries_back(mixer: TokenMixer) -> bool:
    """Return whether no token's value reaches an earlier token."""
    # Weights that were made of a causal layer's, as of merged words, are a fixed factor.
    factor = mixer.factor
    return mixer.is_causal or (factor is not None and not bool((factor != 0)[..., _later(mixer)].any()))


def _later(mixer: TokenMixer) -> Bool[Tensor, "query key"]:
    queries, keys = mixer.shape[-2:]
    places = torch.arange(queries) if mixer.at is None else mixer.at.cpu()
    return torch.arange(keys) > places[:, None]


def open_cells(mixer: TokenMixer, rows: Sequence[int] | None = None) -> Bool[Tensor, "row key"]:
    """Mark the keys that each row, all by default, can have in any head."""
    found = ~_later(mixer) if carries_back(mixer) else torch.ones(mixer.shape[-2:], dtype=torch.bool)
    if mixer.allowed is not None:
        allowed = mixer.allowed.cpu()
        found &= allowed.flatten(0, -3).any(dim=0) if allowed.ndim > 2 else allowed
    return found if rows is None else found[list(rows)]


def mixer_of(trace: Trace, stream: str, layer: int) -> TokenMixer:
    """Return a layer's call; raises `TraceError` if the layer or stream is missing."""
    found: object = trace.attention(layer, stream)
    assert isinstance(found, TokenMixer), "the stream is one of mixers"
    return found


def has_channels(trace: Trace, stream: str, layer: int) -> bool:
    """Return whether each channel of a layer has its own matrix; never with a softmax."""
    return stream in trace.mixers and mixer_of(trace, stream, layer).per == "channel"


def mixers_of(trace: Trace, stream: str) -> dict[int, TokenMixer]:
    """Return a stream's calls by layer number."""
    return dict(zip(trace.layer_numbers(stream), (layer.mixer for layer in trace.mixers[stream]), strict=True))
