"""One text's part of a scan: each head's metrics, roles, looks, examples."""

import functools
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from attention_viz.analysis.measured import MeasuredQueries, RowWeights, asked_rows, looks_back, measured, names_of
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import MEASURED, RoleText, role_shares, shares_of
from attention_viz.analysis.signed import mixer_of, open_cells
from attention_viz.analysis.words import Words
from attention_viz.corpus.kinds import kinds_of, looks_of
from attention_viz.trace.kind import InputKind
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

Heads = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, eq=False)
class Found:
    """Each metric's best query in a text, and its heaviest key: (metric, head).

    Attributes:
        value: the query's metric; −∞ if none applies.
        key: a position.
        pair: both token ids, (metric, head, 2).
    """

    value: "NDArray[Any]"
    query: "NDArray[Any]"
    key: "NDArray[Any]"
    weight: "NDArray[Any]"
    pair: "NDArray[Any]"


@dataclass(frozen=True, eq=False)
class OneText:
    """One text's numbers, heads as in `heads_of`.

    Attributes:
        means: over queries, (metric, head), metrics as in `METRICS`; NaN if none applies.
        squares: squared standard errors, 0 if all queries were measured.
        shares: (role, head).
        looks: (head, query kind, key kind), with pairs per head.
    """

    means: "NDArray[Any]"
    queries: "NDArray[Any]"
    squares: "NDArray[Any]"
    shares: "NDArray[Any]"
    looks: "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]"
    found: Found


def heads_of(trace: Trace, stream: str | None = None) -> Heads:
    """List each head's stream, layer and number in array order: of one stream, or of all attention."""
    return tuple(
        (stream, layer, head)
        for stream in (trace.attention_streams if stream is None else (stream,))
        for layer in trace.layer_numbers(stream)
        for head in range(trace.head_count(layer, stream))
    )


def one_text(trace: Trace, rows: int | None = None, stream: str | None = None) -> OneText:
    """Measure one text, in one stream or in all attention; `rows` limits its queries as in `head_table`."""
    streams = trace.attention_streams if stream is None else (stream,)
    parts = [_of_stream(trace, name, rows) for name in streams]
    along = {"means": 1, "queries": 1, "squares": 1, "shares": 1}
    joined = {
        name: numpy.concatenate([getattr(part, name) for part in parts], axis=axis) for name, axis in along.items()
    }
    looks = tuple(numpy.concatenate([part.looks[at] for part in parts]) for at in range(3))
    found = {
        name: numpy.concatenate([getattr(part.found, name) for part in parts], axis=1)
        for name in ("value", "query", "key", "weight", "pair")
    }
    return OneText(**joined, looks=(looks[0], looks[1], looks[2]), found=Found(**found))


class _QueryPart(NamedTuple):
    """Partial results: the last four take the maximum, others the sum."""

    sums: Tensor
    weight: Tensor
    expected: Tensor
    pairs: Tensor
    value: Tensor
    query: Tensor
    key: Tensor
    most: Tensor


@dataclass(frozen=True, eq=False)
class _Stream:
    trace: Trace
    name: str
    queries: Tokens
    keys: Tokens
    query_kinds: tuple[int, ...]
    key_kinds: tuple[int, ...]
    lettered: Bool[Tensor, " query"]
    text: RoleText

    @classmethod
    def of(cls, trace: Trace, name: str) -> "_Stream":
        queries, keys, back = trace.query_tokens(name), trace.key_tokens(name), looks_back(trace, name)
        seen = name == InputKind.PICTURE.value
        asked = [not one for one in queries.special] if seen else map(_has_letters, queries.texts)
        lettered = torch.from_numpy(numpy.array(list(asked), dtype=bool))
        words = Words(keys)
        key_kinds = kinds_of(words, looks_back=back, seen=seen)
        query_kinds = key_kinds if queries is keys else kinds_of(Words(queries), looks_back=back, seen=seen)
        return cls(trace, name, queries, keys, query_kinds, key_kinds, lettered, RoleText.of(trace, name, words))

    def part(self, some: MeasuredQueries) -> _QueryPart:
        """Sum some queries of some heads."""
        positions = some.rows.positions
        looks = looks_of(
            some.weights,
            self.open_to(some),
            [self.query_kinds[position] for position in positions.tolist()],
            self.key_kinds[: some.weights.shape[-1]],
        )
        shown = some.having & self.lettered[positions]
        value, row = torch.where(shown, some.values, -torch.inf).max(dim=-1)
        most, key = some.weights[torch.arange(len(some.heads)), row].max(dim=-1)
        pairs = looks.pairs.expand_as(looks.weight)
        return _QueryPart(some.sums(), looks.weight, looks.expected, pairs, value, positions[row], key, most)

    def open_to(self, some: MeasuredQueries) -> Bool[Tensor, "row key"]:
        """Mark keys visible to queries in any head; heads measured together share a mask."""
        if self.name in self.trace.mixers:
            mixer = mixer_of(self.trace, self.name, some.heads[0][0])
            return open_cells(mixer, some.rows.positions.tolist())[:, : some.weights.shape[-1]]
        allowed = self.trace.attention(some.heads[0][0], self.name).allowed
        return _open(allowed, some.rows.positions, some.weights.shape)

    def shares(self, some: MeasuredQueries) -> Float64[Tensor, "head share"] | None:
        """Return heads' role shares; None unless all role rows were measured at once."""
        asked = self.text.rows.positions.tolist()
        wanted_found = set(asked)
        rows = [row for row, position in enumerate(some.rows.positions.tolist()) if position in wanted_found]
        whole = some.weights.shape[-1] == len(self.keys) and len(rows) == len(asked)
        if not whole or not rows or bool(some.values[0].isnan().any()):
            return None
        # They follow each other in most texts, and a slice of them is no copy.
        chosen = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] < len(rows) else rows
        names = names_of(self.trace, self.name)
        wanted = [names.index(name) for name in names if name in MEASURED]
        values = torch.where(some.having[wanted][..., chosen], some.values[wanted][..., chosen], torch.nan)
        known: dict[str, Tensor] = dict(zip([names[place] for place in wanted], values, strict=True))
        unbroken = some.weights[:, chosen]
        room = self.open_to(some)[chosen].sum(dim=-1).expand(unbroken.shape[:-1])
        return shares_of(RowWeights(some.heads, unbroken, room, known), self.text)

    def ids(self, query: Tensor, key: Tensor) -> "NDArray[Any]":
        """Return pairs' token ids; of tokens without ids, numbers of their labels."""
        known = [numpy.array(tokens.ids or [*map(_number, tokens.labels)]) for tokens in (self.queries, self.keys)]
        return numpy.stack([known[0][query.numpy()], known[1][key.numpy()]], axis=-1)


def _of_stream(trace: Trace, name: str, asked: int | None) -> OneText:
    stream, rows = _Stream.of(trace, name), asked_rows(trace, name, asked)
    parts, shares = dict[object, _QueryPart](), list[Tensor | None]()
    for some in measured(trace, name, rows, stream.text.rows):
        part = stream.part(some)
        parts[some.heads] = _together(parts[some.heads], part) if some.heads in parts else part
        shares.append(stream.shares(some))
    whole = _joined(parts.values())
    names = names_of(trace, name)
    count, total, squared = whole.sums
    means = torch.where(count > 0, total / count, torch.nan)
    share = len(rows) / max(1, len(stream.queries.counted))
    variance = ((squared - count * means.square()) / (count - 1)).clamp_min(0)
    error = torch.where((count > 1) & (share < 1), variance / count * (1 - share), 0.0)
    known_shares = [one for one in shares if one is not None]
    of_roles = (
        torch.cat(known_shares)
        if len(known_shares) == len(shares)
        else torch.stack(list(role_shares(trace, name).values()))
    )
    found = Found(
        _placed(names, whole.value.numpy(), -numpy.inf),
        _placed(names, whole.query.numpy(), 0),
        _placed(names, whole.key.numpy(), 0),
        _placed(names, whole.most.numpy(), 0),
        _placed(names, stream.ids(whole.query, whole.key), -1),
    )
    looks = (whole.weight.numpy(), whole.expected.numpy(), whole.pairs.numpy())
    shared = of_roles.T.double().numpy()
    means, queries, squares = (
        _placed(names, numbers, nothing)
        for numbers, nothing in ((means.numpy(), numpy.nan), (count.long().numpy(), 0), (error.numpy(), 0))
    )
    return OneText(means, queries, squares, shared, looks, found)


def _placed(names: Sequence[str], numbers: "NDArray[Any]", nothing: float) -> "NDArray[Any]":
    """Place some metrics among all of `METRICS`, along the first axis."""
    found = numpy.full((len(METRICS), *numbers.shape[1:]), nothing, dtype=numbers.dtype)
    found[[list(METRICS).index(name) for name in names]] = numbers
    return found


def _number(label: str) -> int:
    return zlib.crc32(label.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=1 << 14)
def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _together(one: _QueryPart, other: _QueryPart) -> _QueryPart:
    later = other.value > one.value
    summed = [a + b for a, b in zip(one[:4], other[:4], strict=True)]
    return _QueryPart(*summed, *(torch.where(later, b, a) for a, b in zip(one[4:], other[4:], strict=True)))


def _joined(layers: Iterable[_QueryPart]) -> _QueryPart:
    """Join heads: last axis of sums and findings, first of looks."""
    along = (-1, 0, 0, 0, -1, -1, -1, -1)
    return _QueryPart(
        *(torch.cat(list(one), dim=axis) for one, axis in zip(zip(*layers, strict=True), along, strict=True))
    )


def _open(allowed: Tensor | None, rows: Tensor, shape: Sequence[int]) -> Bool[Tensor, "row key"]:
    if allowed is None:
        return torch.ones(shape[-2:], dtype=torch.bool)
    whole = allowed.flatten(0, -3).any(dim=0) if allowed.ndim > 2 else allowed
    return whole.expand(max(len(whole), int(rows.max()) + 1), -1)[rows, : shape[-1]].cpu().expand(shape[-2:])
