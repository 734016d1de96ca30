"""Comparison of two heads on common axes."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.comparison.align import AlignedAxis, Alignment
from attention_viz.analysis.comparison.align import align as align_tokens
from attention_viz.analysis.comparison.shared_rows import shared_rows
from attention_viz.analysis.likeness import divergence
from attention_viz.trace.spelling import table_in_html
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import numpy
    import pandas

__all__ = ["Comparison", "Side", "axes_of", "compare", "on_rows", "streams_of"]

# What a notebook shows: so many weights that differ most, and so many characters of a text.
_LARGEST, _LONGEST = 5, 300


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
        """Return blocked cells as True."""
        one = self.trace.attention(self.layer, self.stream).head(self.head)
        if one.allowed is None:
            return torch.zeros(one.shape, dtype=torch.bool)
        return ~one.allowed.cpu().expand(one.shape)


@dataclass(frozen=True, eq=False, repr=False)
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
        align: how tokens were aligned, "position" or "token", as `align` tells.
        shared: the places of rows that can't differ, since a decoder has read the same up to there. They are left out
            of the mean.
    """

    one: Side
    other: Side
    queries: AlignedAxis
    keys: AlignedAxis
    weights: Float[Tensor, "query key"]
    other_weights: Float[Tensor, "query key"]
    divergence: Float[Tensor, " query"]
    align: Alignment = "position"
    shared: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """Name heads, distance and number of rows."""
        sides = " with ".join(f"{side.stream} layer {side.layer}, head {side.head}" for side in (self.one, self.other))
        size = f"{len(self.queries)} × {len(self.keys)} places"
        return f"Comparison({sides}: {self.mean:.6f} bits over {self.rows} rows, {size}, by {self.align})"

    def _repr_html_(self) -> str:
        return _in_html(self)

    @property
    def compared(self) -> tuple[bool, ...]:
        """True for the rows that the mean is taken over: those that both have and that can differ, without padding."""
        return tuple(counts and place not in self.shared for place, counts in enumerate(self.queries.counted))

    @property
    def rows(self) -> int:
        """Over how many rows the mean is taken."""
        return sum(self.compared)

    @property
    def difference(self) -> Float[Tensor, "query key"]:
        """The second head's weights minus the first's; a key that a text lacks counts as 0, a row it lacks is NaN."""
        apart = self.other_weights.nan_to_num() - self.weights.nan_to_num()
        apart[[*self.queries.removed, *self.queries.inserted]] = torch.nan
        return apart

    def table(self) -> "pandas.DataFrame":
        """Every cell as a row.

        Columns query, query_token, key, key_token, weight, other_weight, difference, query_written, key_written,
        other_query_token, other_key_token. A token is the tokenizer's own piece, such as "Ġbank", of the first text;
        the other's stands in a column of its own, since one may replace another. Written is how people read them,
        "·bank" or "·river→city". `query` and `key` count the places of the common axes; NaN where a text lacks the
        token. `attrs` says how tokens were aligned ("align"), over how many rows the mean is taken ("rows"), and how
        many can't differ ("shared").
        """
        import numpy
        import pandas

        # Each axis is written once, not once per cell: a comparison of two long texts has a million cells.
        rows, columns = (_written(axis) for axis in (self.queries, self.keys))
        down = {name: numpy.repeat(values, len(self.keys)) for name, values in rows.items()}
        across = {name: numpy.tile(values, len(self.queries)) for name, values in columns.items()}
        table = pandas.DataFrame(
            {
                "query": down["place"],
                "query_token": down["token"],
                "key": across["place"],
                "key_token": across["token"],
                "weight": self.weights.flatten().numpy(),
                "other_weight": self.other_weights.flatten().numpy(),
                "difference": self.difference.flatten().numpy(),
                "query_written": down["written"],
                "key_written": across["written"],
                "other_query_token": down["other_token"],
                "other_key_token": across["other_token"],
            }
        )
        table.attrs.update(align=self.align, rows=self.rows, shared=len(self.shared))
        return table

    @property
    def mean(self) -> float:
        """The mean divergence of the rows that both have and that can differ, without padding; NaN without any."""
        return float(self.divergence[torch.tensor(self.compared, dtype=torch.bool)].mean())


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
    align: Alignment = "position",
) -> Comparison:
    """Put two heads on common axes, and say of each row how far apart they are.

    Tokens that are the same in both texts are aligned, and words that replace each other, one by one. Rows that can't
    differ are left out of the mean: a decoder's, as long as both texts are the same up to there. Of models that cut
    words into different pieces, compare what `merge_words` makes of each trace: then words are aligned.

    Args:
        one: the first run.
        other: the second: of another text, of another model, with edits, or the same run for two of its heads.
        layer: the number of the first head's layer, the model's own.
        head: the first head, from 0.
        other_layer: of the second head; as the first by default.
        other_head: the second head; as the first by default.
        stream: of the first run; the only one there is, if none is named.
        other_stream: of the second run; by default the first's where the second run has it.
        align: "position" to compare a word with the one that stands in its place in the other text, as long as the
            two texts differ in as many words there; "token" to compare the same tokens only, wherever they stand: for
            texts whose words were moved.

    Raises:
        TraceError: there is no such layer or stream.
        ShapeError: there is no such head, or no such way to align.
    """
    streams = streams_of(one, other, stream, other_stream)
    first = Side(one, streams[0], layer, head)
    second = Side(
        other, streams[1], layer if other_layer is None else other_layer, head if other_head is None else other_head
    )
    queries, keys = axes_of(one, other, streams, align)
    apart = torch.full((len(queries),), torch.nan, dtype=torch.float64)
    apart[list(queries.both)] = divergence(*on_rows(first.weights, second.weights, queries, keys))
    return Comparison(
        first,
        second,
        queries,
        keys,
        _placed(first.weights, queries.one, keys.one),
        _placed(second.weights, queries.other, keys.other),
        apart,
        align,
        shared_rows(one, other, queries) if (first.layer, first.head) == (second.layer, second.head) else (),
    )


def streams_of(one: Trace, other: Trace, stream: str | None, other_stream: str | None) -> tuple[str, str]:
    """Which attention of each run is compared."""
    first = one.stream(stream)
    return first, other.stream(first if other_stream is None and first in other.attention_streams else other_stream)


def axes_of(one: Trace, other: Trace, streams: tuple[str, str], by: Alignment) -> tuple[AlignedAxis, AlignedAxis]:
    """Align both runs' queries and keys."""
    queries = align_tokens(one.query_tokens(streams[0]), other.query_tokens(streams[1]), by)
    return queries, align_tokens(one.key_tokens(streams[0]), other.key_tokens(streams[1]), by)


def on_rows(
    one: Float[Tensor, "*heads query key"],
    other: Float[Tensor, "*heads other_query other_key"],
    queries: AlignedAxis,
    keys: AlignedAxis,
) -> tuple[Float[Tensor, "*heads both place"], Float[Tensor, "*heads both place"]]:
    """Return two heads' common rows over both texts' keys; 0 if a text lacks one."""
    sides = []
    for weights, rows, columns in ((one, queries.one, keys.one), (other, queries.other, keys.other)):
        mine = weights[..., [rows[place] for place in queries.both], :].double()
        spread = mine.new_zeros(*mine.shape[:-1], len(keys))
        spread[..., [place for place, position in enumerate(columns) if position is not None]] = mine
        sides.append(spread)
    return sides[0], sides[1]


def _written(axis: AlignedAxis) -> "dict[str, numpy.ndarray]":
    import numpy

    columns = {"token": axis.labels, "written": axis.names, "other_token": axis.other_labels}
    texts = {name: numpy.array(values, dtype=object) for name, values in columns.items()}
    return {"place": numpy.arange(len(axis)), **texts}


def _placed(
    weights: Float[Tensor, "query key"], rows: tuple[int | None, ...], columns: tuple[int | None, ...]
) -> Float[Tensor, "row column"]:
    """NaN if their text lacks the token."""
    there = [torch.tensor([place for place, at in enumerate(axis) if at is not None]) for axis in (rows, columns)]
    placed = torch.full((len(rows), len(columns)), torch.nan, dtype=torch.float64)
    placed[there[0][:, None], there[1]] = weights
    return placed


def _in_html(comparison: Comparison) -> str:
    rows = [("first", _side(comparison.one)), ("second", _side(comparison.other))]
    counted = f"{comparison.rows} row{'s' * (comparison.rows != 1)}"
    far = "no row can be compared" if math.isnan(comparison.mean) else f"{comparison.mean:.6f} bits over {counted}"
    rows.append(("mean divergence", far))
    if comparison.shared:
        rows.append(("left out", f"{len(comparison.shared)} rows that can't differ: both texts begin alike"))
    for name, axis in (("queries", comparison.queries), ("keys", comparison.keys)):
        swapped = [axis.names[place] for place in axis.substituted]
        alone = [f"−{axis.names[place]}" for place in axis.removed] + [
            f"+{axis.names[place]}" for place in axis.inserted
        ]
        if swapped or alone:
            rows.append((f"{name} that differ", _shortened(", ".join([*swapped, *alone]))))
    return table_in_html([], rows) + table_in_html(["query", "key", "first", "second"], _changes(comparison))


def _side(side: Side) -> str:
    origin = side.trace.provenance
    text = "" if origin.text is None else f" · “{origin.text}”"
    return _shortened(f"{origin.model} · {side.stream} layer {side.layer}, head {side.head}{text}")


def _changes(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    change = comparison.difference.nan_to_num().abs()
    order = change.flatten().argsort(descending=True, stable=True)[:_LARGEST].tolist()
    cells = [divmod(cell, change.shape[1]) for cell in order]
    return [
        (
            comparison.queries.names[query],
            comparison.keys.names[key],
            _number(float(comparison.weights[query, key])),
            _number(float(comparison.other_weights[query, key])),
        )
        for query, key in cells
        if float(change[query, key]) > 0
    ]


def _number(weight: float) -> str:
    return "not there" if math.isnan(weight) else f"{weight:.4f}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
