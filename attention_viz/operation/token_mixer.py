"""Layers without a softmax as matrices of tokens by tokens: linear attention, state spaces, convolutions.

The output of such a layer is exactly weights · values, where the weights are signed and don't sum to 1. One formula has
most kinds: the weight of key s for query t is Σ_d q_td k_sd e^(G_td − G_sd) × write_s, where G sums the logarithms of
the decays up to a position. A delta rule also erases from the state whatever it holds at a key before it writes there.

Sources: gated delta rule, Yang et al. 2025, "Gated Delta Networks", eq. 10; Kimi delta attention, Kimi Team 2025,
"Kimi Linear", eq. 1; SSD, Dao and Gu 2024, "Transformers are SSMs", eq. 3; selective scan, Gu and Dao 2023, "Mamba",
eq. 2 and Ali et al. 2025, "The Hidden Attention of Mamba Models", eq. 11; lightning, Qin et al. 2024, "Lightning
Attention-2"; RG-LRU, De et al. 2024, "Griffin", eq. 4; mLSTM, Beck et al. 2024, "xLSTM", eq. 27; YOSO, Zeng et al.
2021, "You Only Sample (Almost) Once", eq. 3; Fourier, Lee-Thorp et al. 2022, "FNet", eq. 3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import rows_of_term, term_of_head, without_autocast
from attention_viz.operation.recurrence import Recurrence, carry_back, carry_values
from attention_viz.operation.shapes import FLOATING, broadcasts, is_whole, positions, widened, with_heads
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.operation.terms import Term, along, map_terms, terms_of

__all__ = ["KINDS", "MixerKind", "TokenMixer", "shares_of_size"]

MixerKind = Literal[
    "gated delta",
    "Kimi delta",
    "SSD",
    "selective scan",
    "lightning",
    "RG-LRU",
    "mLSTM",
    "convolution",
    "Fourier",
    "YOSO",
]
KINDS: tuple[MixerKind, ...] = get_args(MixerKind)
# Kinds that erase a key's old value before they write its new one.
_ERASING = ("gated delta", "Kimi delta")
# Rows of weights computed at a time, so that a part of a matrix never takes the memory of the whole.
_ROWS_AT_A_TIME = 512
# Cells of matrices in memory at a time where only a sum over heads is kept.
_CELLS_AT_A_TIME = 8_000_000


@dataclass(frozen=True, eq=False, repr=False)
class TokenMixer(ShortRepr):
    """One call of a layer that mixes tokens without a softmax: its inputs; everything else is computed on use.

    Leading axes broadcast, the last of them is the head. Terms may have fewer heads than there are: each is then shared
    by consecutive heads. Nothing is kept besides the inputs, and everything is differentiable.

    Attributes:
        kind: the rule of the layer, one of `KINDS`.
        query: (…, query, d_k), reads the state.
        key: (…, key, d_k), the place in the state for a token's value.
        value: (…, key, d_v), written into the state.
        decay: (…, key, d_k) or (…, key, 1), the log of the factor that shrinks the state as a token comes, before it
            writes; None if nothing decays.
        write: (…, key, 1), how strongly a token writes; 1 if None.
        gate: (…, query, 1), a factor of each row; 1 if None.
        skip: (…, head), added to the diagonal: a token's way to itself beside the state.
        floor: (…, query, 1), for mLSTM: a row is divided by the larger of this and the size of its sum.
        taps: (…, 1, tap), for a convolution: the factor by distance, the token itself first; farther ones have 0.
        factor: (…, query, key), a fixed factor of each cell, for Fourier; None if there is none.
        allowed: (…, query, key), False for cells that become 0; the others stay as they are.
        scale: multiplies the products of queries and keys.
        exponent: for YOSO, the number of hash functions τ.
        epsilon: for mLSTM, added to the divisor.
        per: "head", or "channel" if each channel of the layer has its own matrix.
        at: (query,) the positions of the queries among the keys, if these are only some of them.

    Raises:
        ShapeError: unknown kind, or shapes and kinds of number that don't fit together.
    """

    kind: MixerKind
    query: Float[Tensor, "... query _d_k"] = field(metadata=along("query", "d_k", needed=True))
    key: Float[Tensor, "... key _d_k"] = field(metadata=along("key", "d_k", needed=True))
    value: Float[Tensor, "... _key d_v"] = field(metadata=along("key", "d_v", needed=True))
    decay: Float[Tensor, "... _key _d_k"] | None = field(default=None, metadata=along("key", "d_k"))
    write: Float[Tensor, "... _key 1"] | None = field(default=None, metadata=along("key", "one"))
    gate: Float[Tensor, "... _query 1"] | None = field(default=None, metadata=along("query", "one"))
    skip: Float[Tensor, "..."] | None = field(default=None, metadata=along("head"))
    floor: Float[Tensor, "... _query 1"] | None = field(default=None, metadata=along("query", "one"))
    taps: Float[Tensor, "... 1 tap"] | None = field(default=None, metadata=along("one", "tap"))
    factor: Float[Tensor, "... _query _key"] | None = field(default=None, metadata=along("query", "key"))
    allowed: Bool[Tensor, "... _query _key"] | None = field(default=None, metadata=along("query", "key", boolean=True))
    scale: float = field(default=1.0, metadata=along(needed=True))
    exponent: float | None = field(default=None, metadata=along(positive=True))
    epsilon: float = field(default=0.0, metadata=along(needed=True))
    per: Literal["head", "channel"] = "head"
    at: Int[Tensor, " query"] | None = None

    def __post_init__(self) -> None:
        """Refuse misfits in plain words, before torch does."""
        _check(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, (…, query, key), without computing them."""
        lead = _lead(self)
        heads = _heads(self)
        return (*lead, *((heads,) if heads else ()), self.query.shape[-2], self.key.shape[-2])

    @property
    def is_causal(self) -> bool:
        """Whether later tokens never reach earlier ones: true of all kinds but Fourier and YOSO."""
        return self.exponent is None and self.factor is None

    @property
    def keeps_state(self) -> bool:
        """Whether tokens are written into a state that later ones read: not in a convolution, Fourier or YOSO."""
        return self.is_causal and self.taps is None

    @property
    def erases(self) -> bool:
        """Whether a token first erases the state's answer to its key, as delta rules do."""
        return self.kind in _ERASING

    @property
    def weights(self) -> Float[Tensor, "... query key"]:
        """How much of each key's value arrives at a query, signed: `weights @ value` is the output."""
        with without_autocast():
            # Heads that share all but their values have the same weights.
            return _cells(self, 0, self.shape[-1]).to(self.query.dtype).expand(self.shape)

    @property
    def shares(self) -> Float[Tensor, "... query key"]:
        """The size of each weight over the sum of the row's sizes; 0 in a row of zeros."""
        return shares_of_size(self.weights)

    @property
    def contributions(self) -> Float[Tensor, "... query key"]:
        """How long the vector is that arrives from each key: ‖weight · value‖.

        Raises:
            ShapeError: only the weights are known, as of merged words.
        """
        if not self.value.shape[-1]:
            raise ShapeError("only the weights are known here, not the values; use the trace as it was recorded")
        lengths = torch.linalg.vector_norm(_for_heads(widened(self.value), self), dim=-1)
        return self.weights.abs() * lengths[..., None, :].to(self.query.dtype)

    @property
    def layer_contributions(self) -> Float[Tensor, "... query key"]:
        """How long the vector is that arrives from each key in all heads or channels: √Σ ‖weight · value‖².

        Fourier's two heads write into the same dimensions, so their vectors are added first. If each channel has its
        own matrix, this is the one picture that leaves nothing out.
        """
        heads, (queries, keys) = _heads(self), self.shape[-2:]
        if not heads:
            return self.contributions
        together = max(1, _CELLS_AT_A_TIME // max(1, queries * keys))
        parts = [self.heads(slice(first, first + together)) for first in range(0, heads, together)]
        squares = torch.stack([part.contributions.square().sum(dim=-3) for part in parts]).sum(dim=0)
        if self.kind == "Fourier":
            # Its cosine and sine write into the same dimensions.
            both = (self.value[..., 0, :, :] * self.value[..., 1, :, :]).sum(dim=-1)
            squares = squares + 2 * self.weights.prod(dim=-3) * both[..., None, :]
        return squares.clamp_min(0).sqrt()

    @property
    def output(self) -> Float[Tensor, "... query d_v"]:
        """The values mixed by the weights, chunk by chunk: the weights are never in memory as a whole."""
        with without_autocast():
            return _mixed(self).to(self.query.dtype)

    def head(self, index: int) -> "TokenMixer":
        """Return one head or channel: (query, d_k) where the call was (head, query, d_k).

        Raises:
            ShapeError: no such head, or no head axis.
        """
        heads = _heads(self)
        if not heads:
            raise ShapeError(f"this call has no head axis, so it has no head {index!r}; its shape is {self.shape}")
        if not is_whole(index) or not 0 <= index < heads:
            raise ShapeError(f"unknown head {index!r}; choose 0 to {heads - 1}")
        return map_terms(self, lambda term, value: term_of_head(term, value, index, heads))

    def heads(self, chosen: slice) -> "TokenMixer":
        """Return this call for some of its heads or channels.

        Raises:
            ShapeError: no head axis.
        """
        heads = _heads(self)
        if not heads:
            raise ShapeError(f"this call has no head axis to choose from; its shape is {self.shape}")

        def cut(term: Term, value: Any) -> Any:
            if term.is_matrix:
                return with_heads(value, heads)[..., chosen, :, :] if value.ndim > 2 and value.shape[-3] > 1 else value
            per_head = isinstance(value, Tensor) and value.ndim and value.shape[-1] > 1
            return value[..., chosen] if per_head else value

        return map_terms(self, cut)

    def rows(self, queries: slice | Sequence[int]) -> "TokenMixer":
        """Return this call for some of its queries, with all its keys.

        Args:
            queries: which rows, as a slice or positions.

        Raises:
            ShapeError: a position outside the text.
        """
        chosen = positions(queries, self.shape[-2], "query", self.query.device)
        return _rows(self, chosen)

    def tile(
        self, head: int, queries: slice | Sequence[int], keys: slice | Sequence[int]
    ) -> Float[Tensor, "... tile_query tile_key"]:
        """Return the weights of a rectangle, exact, without the whole matrix in memory.

        Args:
            head: which head, from 0.
            queries: which rows, as a slice or positions.
            keys: which columns, as a slice or positions.

        Raises:
            ShapeError: no such head, or a position outside the text.
        """
        one = self.head(head)
        rows = positions(queries, one.shape[-2], "query", self.query.device)
        columns = positions(keys, one.shape[-1], "key", self.query.device)
        if not len(columns):
            return one.query.new_zeros(*one.shape[:-2], len(rows), 0)
        first, after = int(columns.min()), int(columns.max()) + 1
        with without_autocast():
            bands = [_cells(_rows(one, some), first, after) for some in rows.split(_ROWS_AT_A_TIME)]
        return torch.cat(bands, dim=-2)[..., columns - first].to(self.query.dtype)


def shares_of_size(weights: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows key"]:
    """Return each weight's size over its row's sum of sizes; a row of zeros stays, one with NaN becomes NaN."""
    sizes = weights.abs()
    whole = sizes.sum(dim=-1, keepdim=True)
    return sizes / whole.masked_fill(whole == 0, 1)


def _rows(mixer: TokenMixer, chosen: Tensor) -> TokenMixer:
    queries, terms = mixer.shape[-2], terms_of(TokenMixer)
    found = {term: getattr(mixer, term.name) for term in terms if term.has_queries}
    cut = {term.name: rows_of_term(chosen, queries, term, one) for term, one in found.items() if one is not None}
    changed: Any = {**cut, "at": _places(mixer)[chosen]}
    return replace(mixer, **changed)


def _places(mixer: TokenMixer) -> Tensor:
    """Return the queries' positions among the keys."""
    return torch.arange(mixer.query.shape[-2], device=mixer.query.device) if mixer.at is None else mixer.at


def _cells(mixer: TokenMixer, first: int, after: int) -> Tensor:
    """Return the weights of the keys from `first` to before `after`."""
    keys = mixer.shape[-1]
    # A row that is divided by its sum needs all of it.
    start, stop = (first, after) if mixer.floor is None else (0, keys)
    places, columns = _places(mixer), torch.arange(start, stop, device=mixer.query.device)
    if mixer.keeps_state:
        cells = carry_back(_recurrence(mixer), places, start, stop)
    else:
        cells = _direct(mixer, places, columns)
    if mixer.floor is not None:
        divisor = torch.maximum(cells.sum(dim=-1, keepdim=True).abs(), _for_heads(widened(mixer.floor), mixer))
        cells = (cells / (divisor + mixer.epsilon))[..., first:after]
        columns = columns[first:after]
    if mixer.skip is not None:
        cells = cells + (places[:, None] == columns) * _per_head(mixer.skip, mixer).to(cells.dtype)
    if mixer.gate is not None:
        cells = cells * _for_heads(widened(mixer.gate), mixer)
    if mixer.allowed is not None:
        cells = cells.masked_fill(~_for_heads(mixer.allowed, mixer)[..., first:after], 0)
    return cells


def _mixed(mixer: TokenMixer) -> Tensor:
    values = _for_heads(widened(mixer.value), mixer)
    whole = mixer.at is None and mixer.allowed is None
    if not whole or not mixer.keeps_state:
        rows = torch.arange(mixer.shape[-2], device=values.device).split(_ROWS_AT_A_TIME)
        return torch.cat([_cells(_rows(mixer, some), 0, mixer.shape[-1]) @ values for some in rows], dim=-2)
    summed = mixer.floor is not None
    carried = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1) if summed else values
    found = carry_values(_recurrence(mixer), carried)
    if mixer.floor is not None:
        divisor = torch.maximum(found[..., -1:].abs(), _for_heads(widened(mixer.floor), mixer)) + mixer.epsilon
        found = found[..., :-1] / divisor
    if mixer.skip is not None:
        found = found + values * _per_head(mixer.skip, mixer).to(found.dtype)
    return found if mixer.gate is None else found * _for_heads(widened(mixer.gate), mixer)


def _direct(mixer: TokenMixer, places: Tensor, columns: Tensor) -> Tensor:
    """Compute cells of the kinds that have no state: a convolution, Fourier, YOSO."""
    query, key = (_for_heads(widened(one), mixer) for one in (mixer.query, mixer.key[..., columns, :]))
    cells = query @ key.mT * mixer.scale
    if mixer.exponent is not None:
        bound = 1 - torch.finfo(cells.dtype).eps  # arccos has no slope at the ends
        cells = (1 - torch.arccos(cells.clamp(-bound, bound)) / math.pi) ** mixer.exponent
    if mixer.factor is not None:
        cells = cells * _for_heads(widened(mixer.factor), mixer)[..., columns]
    if mixer.taps is not None:
        taps = _for_heads(widened(mixer.taps), mixer)[..., 0, :]
        distance = places[:, None] - columns
        inside = (distance >= 0) & (distance < taps.shape[-1])
        cells = cells * taps[..., distance.clamp(0, taps.shape[-1] - 1)] * inside
    return cells


def _recurrence(mixer: TokenMixer) -> Recurrence:
    query, key = (_for_heads(widened(one), mixer) for one in (mixer.query, mixer.key))
    decay, write = (None if one is None else _for_heads(widened(one), mixer) for one in (mixer.decay, mixer.write))
    return Recurrence(query * mixer.scale, key, decay, write, mixer.erases)


def _for_heads(term: Tensor, mixer: TokenMixer) -> Tensor:
    """Repeat a term's heads so that each head has its own."""
    return with_heads(term, _heads(mixer))


def _per_head(numbers: Tensor, mixer: TokenMixer) -> Tensor:
    """(…, head, 1, 1), or a lone number."""
    return numbers[..., None, None] if _heads(mixer) else numbers


def _matrices(mixer: TokenMixer) -> list[tuple[str, Tensor]]:
    found = [(term.name, getattr(mixer, term.name)) for term in terms_of(TokenMixer) if term.is_matrix]
    return [(name, value) for name, value in found if value is not None]


def _heads(mixer: TokenMixer) -> int:
    """Return the number of heads; 0 without a head axis."""
    return max((value.shape[-3] for _, value in _matrices(mixer) if value.ndim >= 3), default=0)


def _lead(mixer: TokenMixer) -> tuple[int, ...]:
    """Return the axes before the head."""
    found: tuple[int, ...] = ()
    for _, value in _matrices(mixer):
        found = tuple(torch.broadcast_shapes(found, value.shape[:-3]))
    return found


def _check(mixer: TokenMixer) -> None:
    if mixer.kind not in KINDS:
        raise ShapeError(f"unknown kind {mixer.kind!r}; choose {', '.join(KINDS)}")
    for name, value in _matrices(mixer):
        kinds = {torch.bool} if name == "allowed" else FLOATING
        if not isinstance(value, Tensor) or value.ndim < 2 or value.dtype not in kinds:  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"{name} needs a tensor of floating numbers with at least two axes; got {value!r:.80}")
    heads = _heads(mixer)
    uneven = [name for name, value in _matrices(mixer) if value.ndim >= 3 and heads % max(value.shape[-3], 1)]
    if uneven:
        raise ShapeError(f"the heads of {uneven[0]} can't be shared evenly by {heads} heads")
    queries, keys, width = mixer.query.shape[-2], mixer.key.shape[-2], mixer.query.shape[-1]
    if mixer.key.shape[-1] != width:
        raise ShapeError(f"query and key need the same width; got {width} and {mixer.key.shape[-1]}")
    places = len(mixer.at) if mixer.at is not None else keys
    if queries != places:
        raise ShapeError(f"each of {places} positions needs a query; got {queries}")
    sizes = {"query": queries, "key": keys, "d_k": width, "one": 1}
    for term in terms_of(TokenMixer):
        value = getattr(mixer, term.name)
        if value is None or not term.is_matrix or term.name in ("query", "key"):
            continue
        own = tuple(value.shape[-2:])
        wanted = tuple(sizes[name] if name in sizes else size for name, size in zip(term.axes.names, own, strict=True))
        if not broadcasts(own, wanted) or (term.name == "value" and own[0] != keys):
            raise ShapeError(f"{term.name} needs the axes ({', '.join(term.axes.names)}) = {wanted}; got {own}")
