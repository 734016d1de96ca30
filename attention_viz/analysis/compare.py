"""Two heads beside each other, of two texts, models, edits or moments of training: on common axes, with a number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.align import Axis, align
from attention_viz.analysis.likeness import divergence
from attention_viz.errors import TraceError
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["Comparison", "Side", "compare", "head_divergences"]


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two heads that are compared."""

    trace: Trace
    stream: str
    layer: int
    head: int

    @property
    def weights(self) -> Float[Tensor, "query key"]:
        """Its weights, (query, key), in float64."""
        return self.trace.weights(self.layer, self.head, self.stream).detach().cpu().double()

    @property
    def blocked(self) -> Bool[Tensor, "query key"]:
        """True where a query may not look at a key."""
        one = self.trace.attention(self.layer, self.stream).head(self.head)
        if one.allowed is None:
            return torch.zeros(one.shape, dtype=torch.bool)
        return ~one.allowed.cpu().expand(one.shape)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two heads on common axes. Queries stand down the rows and keys across, as everywhere.

    Attributes:
        one: the first head.
        other: the second.
        queries: the tokens of both along the rows.
        keys: the tokens of both along the columns.
        weights: of the first head, (query, key) on the common axes; NaN where the first text lacks the token.
        other_weights: the same of the second.
        divergence: of each row the Jensen–Shannon divergence, in bits, from 0, equal, to 1, nothing in common; NaN for
            rows that only one has. It is taken over the keys of both texts: what a row puts on a token that the other
            text lacks is weight elsewhere, as against 0 there.
    """

    one: Side
    other: Side
    queries: Axis
    keys: Axis
    weights: Float[Tensor, "query key"]
    other_weights: Float[Tensor, "query key"]
    divergence: Float[Tensor, " query"]

    @property
    def difference(self) -> Float[Tensor, "query key"]:
        """The second head's weights minus the first's; a key that a text lacks counts as 0, a row it lacks is NaN."""
        apart = self.other_weights.nan_to_num() - self.weights.nan_to_num()
        apart[[*self.queries.removed, *self.queries.inserted]] = torch.nan
        return apart

    def table(self) -> "pandas.DataFrame":
        """Every cell as a row.

        Columns query, query_token, key, key_token, weight, other_weight, difference, query_written, key_written.
        A token is the tokenizer's own piece, such as "Ġbank"; written is how people read it, "·bank".
        `query` and `key` count the places of the common axes; NaN where a text lacks the token.
        """
        import pandas

        places = [(query, key) for query in range(len(self.queries)) for key in range(len(self.keys))]
        queries, keys = zip(*places, strict=True)
        return pandas.DataFrame(
            {
                "query": queries,
                "query_token": [self.queries.labels[place] for place in queries],
                "key": keys,
                "key_token": [self.keys.labels[place] for place in keys],
                "weight": self.weights.flatten().numpy(),
                "other_weight": self.other_weights.flatten().numpy(),
                "difference": self.difference.flatten().numpy(),
                "query_written": [self.queries.written[place] for place in queries],
                "key_written": [self.keys.written[place] for place in keys],
            }
        )

    @property
    def mean(self) -> float:
        """The mean divergence of the rows that both have, padding left out; NaN where they have none in common."""
        return float(self.divergence[torch.tensor(self.queries.counted, dtype=torch.bool)].mean())


def compare(
    one: Trace,
    other: Trace,
    layer: int,
    head: int,
    *,
    other_layer: int | None = None,
    other_head: int | None = None,
    stream: str | None = None,
    other_stream: str | None = None,
) -> Comparison:
    """Put two heads on common axes, and say of each row how far apart they are.

    Tokens are aligned by `align`. Of models that cut words into different pieces, compare what `merge_words` makes of
    each trace: then words are aligned.

    Args:
        one: the first run.
        other: the second: of another text, of another model, with edits, or the same run for two of its heads.
        layer: of the first head, from 0.
        head: the first head, from 0.
        other_layer: of the second head; as the first by default.
        other_head: the second head; as the first by default.
        stream: of the first run; the only one there is, if none is named.
        other_stream: of the second run; by default the first's where the second run has it.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head.
    """
    streams = _streams(one, other, stream, other_stream)
    first = Side(one, streams[0], layer, head)
    second = Side(
        other, streams[1], layer if other_layer is None else other_layer, head if other_head is None else other_head
    )
    queries, keys = _axes(one, other, streams)
    apart = torch.full((len(queries),), torch.nan, dtype=torch.float64)
    apart[list(queries.both)] = divergence(*_on_rows(first.weights, second.weights, queries, keys))
    return Comparison(
        first,
        second,
        queries,
        keys,
        _placed(first.weights, queries.one, keys.one),
        _placed(second.weights, queries.other, keys.other),
        apart,
    )


def head_divergences(
    one: Trace,
    other: Trace,
    *,
    stream: str | None = None,
    other_stream: str | None = None,
    head: tuple[int, int] | None = None,
) -> Float[Tensor, "layer head"]:
    """How far apart two runs are, head by head: of each the mean that `Comparison.mean` tells.

    Args:
        one: the first run.
        other: the second.
        stream: of the first; the only one there is, if none is named.
        other_stream: of the second; by default the first's where the second run has it.
        head: (layer, head) of the first run that every head of the second is compared with; by default each with the
            same head of the other run.

    Returns:
        In bits, one number a head of the second run; NaN for heads that a layer doesn't have, and for all where the
        runs have no token in common. The rows are the layers that the second run keeps, `layer_numbers` of it.

    Raises:
        TraceError: there is no such layer or stream, or the runs don't have the same heads and `head` isn't told.
        ShapeError: there is no such head.
    """
    streams = _streams(one, other, stream, other_stream)
    counts = [
        [trace.head_count(at, name) for at in trace.layer_numbers(name)] for trace, name in _both(one, other, streams)
    ]
    numbers = other.layer_numbers(streams[1])
    if head is None and one.layer_numbers(streams[0]) != numbers:
        raise TraceError(
            "each head can be compared with the same head of another run where both keep the same layers; got "
            f"{one.kept[streams[0]]} and {other.kept[streams[1]]}. Two of them can be compared in any case"
        )
    if head is None and counts[0] != counts[1]:
        raise TraceError(
            "each head can be compared with the same head of another run where both have the same heads; got "
            f"{_sizes(counts[0])} and {_sizes(counts[1])}. Two of them can be compared in any case"
        )
    queries, keys = _axes(one, other, streams)
    counted = [queries.counted[place] for place in queries.both]
    fixed = None if head is None else Side(one, streams[0], *head).weights
    found = torch.full((len(counts[1]), max(counts[1])), torch.nan, dtype=torch.float64)
    for row, layer, count in zip(found, numbers, counts[1], strict=True):
        mine = other.attention(layer, streams[1]).weights.detach().cpu()
        theirs = fixed.expand(count, -1, -1) if fixed is not None else one.attention(layer, streams[0]).weights.detach()
        apart = divergence(*_on_rows(theirs.cpu(), mine, queries, keys))
        row[:count] = apart[:, counted].mean(dim=-1)
    return found


def _streams(one: Trace, other: Trace, stream: str | None, other_stream: str | None) -> tuple[str, str]:
    first = one.stream(stream)
    return first, other.stream(first if other_stream is None and first in other.streams else other_stream)


def _both(one: Trace, other: Trace, streams: tuple[str, str]) -> tuple[tuple[Trace, str], tuple[Trace, str]]:
    return (one, streams[0]), (other, streams[1])


def _axes(one: Trace, other: Trace, streams: tuple[str, str]) -> tuple[Axis, Axis]:
    queries = align(one.query_tokens(streams[0]), other.query_tokens(streams[1]))
    return queries, align(one.key_tokens(streams[0]), other.key_tokens(streams[1]))


def _on_rows(
    one: Float[Tensor, "*heads query key"],
    other: Float[Tensor, "*heads other_query other_key"],
    queries: Axis,
    keys: Axis,
) -> tuple[Float[Tensor, "*heads both place"], Float[Tensor, "*heads both place"]]:
    """The rows that both have, over the keys of both, 0 where a text lacks the key."""
    sides = []
    for weights, rows, columns in ((one, queries.one, keys.one), (other, queries.other, keys.other)):
        mine = weights[..., [rows[place] for place in queries.both], :].double()
        spread = mine.new_zeros(*mine.shape[:-1], len(keys))
        spread[..., [place for place, position in enumerate(columns) if position is not None]] = mine
        sides.append(spread)
    return sides[0], sides[1]


def _placed(
    weights: Float[Tensor, "query key"], rows: tuple[int | None, ...], columns: tuple[int | None, ...]
) -> Float[Tensor, "row column"]:
    """Weights on the common axes, NaN where their text lacks the token."""
    there = [torch.tensor([place for place, at in enumerate(axis) if at is not None]) for axis in (rows, columns)]
    placed = torch.full((len(rows), len(columns)), torch.nan, dtype=torch.float64)
    placed[there[0][:, None], there[1]] = weights
    return placed


def _sizes(counts: list[int]) -> str:
    return f"{len(counts)} layers × {' or '.join(str(count) for count in sorted(set(counts)))} heads"
