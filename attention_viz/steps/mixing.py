"""Open one head or channel of a layer without a softmax, and walk the state between a query and a key.

All numbers of a pair are computed in float64 from the recorded terms, token by token, without the chunks that compute
whole matrices.

Source: the rules in `operation.token_mixer`. A reading vector walks back from the query. At each token, a
delta rule subtracts the erased part; then the decay shrinks the rest.
"""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import FLOATING
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.layers import MixerLayer
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class MixerHead:
    """One head or channel of a mixer; made by `open_mixer`."""

    trace: Trace
    layer: int
    head: int
    stream: str

    @property
    def entry(self) -> MixerLayer:
        """The layer as recorded, with all heads or channels."""
        return self.trace.mixers[self.stream][self.trace.layer_numbers(self.stream).index(self.layer)]

    @property
    def heads(self) -> int:
        """How many heads or channels the layer has."""
        return self.entry.mixer.shape[0]

    @once
    def mixer(self) -> TokenMixer:
        """This head's call, as recorded."""
        return cast("TokenMixer", self.trace.attention(self.layer, self.stream)).head(self.head)

    @once
    def exact(self) -> TokenMixer:
        """This head's call in float64."""
        return map_terms(self.mixer, lambda _, value: value.double() if _is_number(value) else value)

    @once
    def weights(self) -> Float[Tensor, "query key"]:
        """The signed weights, computed once."""
        return self.mixer.weights

    @once
    def has_vectors(self) -> bool:
        """Whether queries and keys are the layer's own, not ones in the place of them."""
        return not (bool((self.mixer.query == 1).all()) and bool((self.mixer.key == 1).all()))

    @once
    def kept(self) -> Float[Tensor, "query key"] | None:
        """The part of each key's write that its own key would still read at a query; None without a state."""
        return _kept(self.exact) if self.mixer.keeps_state else None


@dataclass(frozen=True, eq=False)
class Walk:
    """The state's way from a key to a query, in float64.

    Attributes:
        between: the log decays' sum over the tokens after the key, (1,) or (d_k,).
        decayed: the key's reading if nothing were erased.
        reading: the key's reading, before its write strength.
        later: positions of the tokens after the key, up to the query.
        weights: (later,) each later token's own weight for the query, before gate and divisor.
        overlaps: (later,) each later key's reading of this key if nothing were erased.
        found: (later,) each later key's reading of this key after all erasing before it.
    """

    between: Float[Tensor, " d_k"]
    decayed: float
    reading: float
    later: range
    weights: Float[Tensor, " later"]
    overlaps: Float[Tensor, " later"]
    found: Float[Tensor, " later"]

    @property
    def erased(self) -> float:
        """How much of the reading the later tokens erased."""
        return float(self.weights @ self.overlaps)

    @property
    def restored(self) -> Float[Tensor, " later"]:
        """How much the reading would grow if one later token didn't erase and all others did."""
        return self.weights * self.found


def open_mixer(trace: Trace, layer: int, head: int, stream: str | None = None) -> MixerHead:
    """Open one head or channel of a layer without a softmax.

    Raises:
        TraceError: no such layer or stream.
        ShapeError: no such head, or the layer has softmax attention.
    """
    stream = "mixer" if stream is None else stream
    if not isinstance(trace.attention(layer, stream), TokenMixer):
        raise ShapeError(f"layer {layer} of {stream} has softmax attention; open it with open_head")
    opened = MixerHead(trace, layer, head, stream)
    _ = opened.mixer  # refuses a head that isn't there
    return opened


def walk(opened: MixerHead, query: int, key: int) -> Walk:
    """Walk from a key to a query that isn't before it, of a kind with a state."""
    call = opened.exact
    keys, later = call.key, range(key + 1, query + 1)
    decays, writes = logs_of(call), writes_of(call)
    reading, plain, left = call.query[query] * call.scale, keys[key], keys[key]
    weights, overlaps, found = (torch.zeros(len(later), dtype=torch.float64) for _ in range(3))
    between = decays[key + 1 : query + 1].sum(dim=0)
    decayed = float((reading * between.exp()) @ keys[key])
    if call.erases:
        for at, j in enumerate(later):
            plain, left = plain * decays[j].exp(), left * decays[j].exp()
            overlaps[at], found[at] = keys[j] @ plain, keys[j] @ left
            left = left - writes[j] * keys[j] * found[at]
        for at, j in reversed(list(enumerate(later))):
            weights[at] = writes[j] * (keys[j] @ reading)
            reading = (reading - weights[at] * keys[j]) * decays[j].exp()
    else:
        reading = reading * between.exp()
    return Walk(between, decayed, float(reading @ keys[key]), later, weights, overlaps, found)


def logs_of(call: TokenMixer) -> Float[Tensor, "key d_k"]:
    """Return each token's log decay; zeros without decay."""
    rows = call.key.shape[-2]
    return call.key.new_zeros(rows, 1) if call.decay is None else call.decay.expand(rows, call.decay.shape[-1])


def writes_of(call: TokenMixer) -> Float[Tensor, " key"]:
    """Return each token's write strength; ones without it."""
    rows = call.key.shape[-2]
    return call.key.new_ones(rows) if call.write is None else call.write[..., 0].expand(rows)


def lone(term: Tensor | None, row: int) -> float | None:
    """Return a row's number of a term (row, 1); None without the term."""
    return None if term is None else float(term[row if term.shape[0] > 1 else 0, 0])


def _kept(call: TokenMixer) -> Float[Tensor, "query key"]:
    """Carry all keys' writes forward at once; a row is their rest at one query."""
    keys, decays, writes = call.key, logs_of(call).exp(), writes_of(call)
    count = keys.shape[0]
    rest, rows = torch.zeros_like(keys), keys.new_zeros(count, count)
    sizes = keys.square().sum(dim=-1).clamp_min(torch.finfo(keys.dtype).tiny)
    for at in range(count):
        rest = rest * decays[at]
        if call.erases:
            rest = rest - writes[at] * (rest @ keys[at])[:, None] * keys[at]
        rest[at] = keys[at]
        rows[at] = (rest * keys).sum(dim=-1) / sizes
    return rows


def _is_number(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype in FLOATING
