"""Carry the rows of a linear recurrence back over its tokens, and its values forward, chunk by chunk.

A chunk of tokens maps the state before it, (d_k, d_v), to the state after it. The same two matrices carry a row of the
weights the other way: from the chunk's end, to its cells in the chunk and to its start. Decays are summed in float64
inside a chunk, so that no long sum loses digits.

Source: Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", section 3.2
(the WY form), applied to the identity in place of values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Recurrence", "carry_back", "carry_values"]

# Tokens in a chunk; with a decay of its own for each dimension, a chunk's products take d_k times the memory.
_TOKENS, _TOKENS_OF_DIMENSIONS = 128, 32


class Recurrence(NamedTuple):
    """The terms of the general formula: query and key (…, token, d_k), decay and write of each token or None."""

    query: Tensor
    key: Tensor
    decay: Tensor | None
    write: Tensor | None
    erases: bool

    @property
    def lead(self) -> torch.Size:
        """The axes before (token, width), broadcast."""
        known = (self.query, self.key, self.decay, self.write)
        return torch.broadcast_shapes(*(one.shape[:-2] for one in known if one is not None))


class _Stretch(NamedTuple):
    """One chunk's map, state before to state after: through · state + into · values.

    Attributes:
        sums: log decays from the chunk's start up to each token, itself included, float64; None without decay.
        written: (token, token), each token's write as a mix of the chunk's values.
        erased: (token, d_k), the part of the state before the chunk that each token erases; None if none does.
        into: (d_k, token).
        through: (d_k, d_k), or (1, d_k) if each dimension stays by itself.
    """

    key: Tensor
    sums: Tensor | None
    written: Tensor
    erased: Tensor | None
    into: Tensor
    through: Tensor


def carry_back(terms: Recurrence, places: Int[Tensor, " row"], first: int, after: int) -> Float[Tensor, "... row key"]:
    """Return the weights of the rows at `places` for the keys from `first` to before `after`."""
    key, lead = terms.key, terms.lead
    order = places.argsort()
    rows, query = places[order], terms.query
    if not (rising := bool((rows == places).all())):
        query = query[..., order, :]
    weights = key.new_zeros(*lead, len(rows), after - first)
    carried = key.new_zeros(*lead, 0, key.shape[-1])
    begun = len(rows)
    for chunk in reversed(list(_starts(terms, int(rows[-1]) + 1 if len(rows) else 0))):
        if chunk[1] <= first:
            break
        part = _chunk(terms, *chunk)
        # Rows before the chunk have nothing in it.
        from_here = int(torch.searchsorted(rows, chunk[0]))
        cells = carried @ part.into
        carried = carried @ part.through if part.erased is not None else carried * part.through
        if from_here < begun:
            inside = slice(from_here, begun)
            found, reach = _begin(part, query[..., inside, :], rows[inside] - chunk[0])
            cells = torch.cat([found.expand(*lead, *found.shape[-2:]), cells], dim=-2)
            carried = torch.cat([reach.expand(*lead, *reach.shape[-2:]), carried], dim=-2)
            begun = from_here
        start, stop = max(chunk[0], first), min(chunk[1], after)
        if start < stop:
            weights[..., begun:, start - first : stop - first] = cells[..., start - chunk[0] : stop - chunk[0]]
    return weights if rising else weights[..., order.argsort(), :]


def carry_values(terms: Recurrence, values: Float[Tensor, "... key d_v"]) -> Float[Tensor, "... key d_v"]:
    """Return the output at every position, without the weights of earlier chunks."""
    key = terms.key
    state = key.new_zeros(*terms.lead, key.shape[-1], values.shape[-1])
    found = [values[..., :0, :].expand(*torch.broadcast_shapes(terms.lead, values.shape[:-2]), 0, values.shape[-1])]
    for start, stop in _starts(terms, key.shape[-2]):
        part = _chunk(terms, start, stop)
        own = values[..., start:stop, :]
        cells, reach = _begin(part, terms.query[..., start:stop, :], torch.arange(stop - start, device=key.device))
        found.append(reach @ state + cells @ own)
        before = part.through @ state if part.erased is not None else part.through.mT * state
        state = before + part.into @ own
    return torch.cat(found, dim=-2)


def _starts(terms: Recurrence, count: int) -> Iterator[tuple[int, int]]:
    decay = terms.decay
    size = _TOKENS if decay is None or decay.shape[-1] == 1 else _TOKENS_OF_DIMENSIONS
    yield from ((start, min(start + size, terms.key.shape[-2])) for start in range(0, count, size))


def _chunk(terms: Recurrence, start: int, stop: int) -> _Stretch:
    key = terms.key[..., start:stop, :]
    sums = None if terms.decay is None else terms.decay[..., start:stop, :].double().cumsum(dim=-2)
    count = stop - start
    strength = key.new_ones(count, 1) if terms.write is None else terms.write[..., start:stop, :]
    leaving = key if sums is None else key * _power(sums[..., -1:, :] - sums, key)
    through = key.new_ones(1, key.shape[-1]) if sums is None else _power(sums[..., -1:, :], key)
    through = through.expand(*through.shape[:-1], key.shape[-1])
    unit = torch.eye(count, dtype=key.dtype, device=key.device)
    written = unit * strength.mT
    erased = None
    if terms.erases:
        overlap = strength * _products(key, key, sums, torch.arange(count, device=key.device)).tril(-1)
        written = torch.linalg.solve_triangular(unit + overlap, written, upper=False, unitriangular=True)
        erased = written @ (key if sums is None else key * _power(sums, key))
        through = torch.diag_embed(through[..., 0, :]) - leaving.mT @ erased
    return _Stretch(key, sums, written, erased, leaving.mT @ written, through)


def _begin(part: _Stretch, query: Tensor, local: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows' cells in their own chunk, and what of each reaches the state before it."""
    near = _products(query, part.key, part.sums, local)
    reach = query if part.sums is None else query * _power(part.sums[..., local, :], query)
    if part.erased is not None:
        reach = reach - near @ part.erased
    return near @ part.written, reach


def _products(query: Tensor, key: Tensor, sums: Tensor | None, local: Tensor) -> Tensor:
    """Return Σ_d q_td k_sd e^(G_td − G_sd) for the rows at `local`, 0 after the row's own token."""
    ahead = torch.arange(key.shape[-2], device=key.device) > local[:, None]
    if sums is None:
        return (query @ key.mT).masked_fill(ahead, 0)
    if sums.shape[-1] == 1:
        between = sums[..., local, :] - sums.mT
        return query @ key.mT * _power(between.masked_fill(ahead, -torch.inf), query)
    between = sums[..., local, None, :] - sums[..., None, :, :]
    kept = _power(between.masked_fill(ahead[..., None], -torch.inf), query)
    return (query[..., :, None, :] * kept * key[..., None, :, :]).sum(dim=-1)


def _power(exponent: Tensor, like: Tensor) -> Tensor:
    return exponent.exp().to(like.dtype)
