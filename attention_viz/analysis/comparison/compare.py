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
from attention_viz.analysis.signed import mixer_of, open_cells, signed_shares
from attention_viz.errors import TraceError
from attention_viz.trace.spelling import table_in_html
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import numpy
    import pandas

__all__ = ["Comparison", "Side", "axes_of", "compare", "on_rows", "rows_apart", "streams_of"]

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
    def mixes(self) -> bool:
        """Whether the layer has no softmax, so that weights are signed."""
        return self.stream in self.trace.mixers

    @property
    def weights(self) -> Float[Tensor, "query key"]:
        """Its weights, (query, key), in float64."""
        return self.trace.weights(self.layer, self.head, self.stream).detach().cpu().double()

    @property
    def blocked(self) -> Bool[Tensor, "query key"]:
        """Return blocked cells as True; without a softmax, those that no value can reach."""
        if self.mixes:
            mixer = mixer_of(self.trace, self.stream, self.layer).head(self.head)
            return ~open_cells(mixer)
        one = self.trace.attention(self.layer, self.stream).head(self.head)
        if one.allowed is None:
            return torch.zeros(one.shape, dtype=torch.bool)
        return ~one.allowed.cpu().expand(one.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two heads on common axes, queries down and keys across.

    Attributes:
        one: the first head.
        other: the second.
        queries: both heads' tokens along the rows.
        keys: both heads' tokens along the columns.
        weights: the first head's, (query, key) on the common axes; NaN if the first text lacks the token.
        other_weights: likewise of the second.
        divergence: each row's Jensen–Shannon divergence in bits, from 0, equal, to 1, nothing in common; NaN for rows
            that only one has. It covers the keys of both texts: a weight on a token that the other text lacks is
            compared with 0. Rows of a layer without a softmax are signed shares of size, |A| over the row's Σ|A|, with
            each key once for a value that is carried and once for one that is taken away: 0 if two rows differ only by
            a factor.
        align: how tokens were aligned, "position" or "token"; see `align`.
        shared: the indices of rows that can't differ, because a decoder has read the same text so far. The mean leaves
            them out.
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
        """Mark the rows in the mean: in both runs, able to differ, not padding."""
        return tuple(counts and place not in self.shared for place, counts in enumerate(self.queries.counted))

    @property
    def rows(self) -> int:
        """Count the rows in the mean."""
        return sum(self.compared)

    @property
    def difference(self) -> Float[Tensor, "query key"]:
        """The second head's weights minus the first's; a key that a text lacks counts as 0, a row it lacks is NaN."""
        apart = self.other_weights.nan_to_num() - self.weights.nan_to_num()
        apart[[*self.queries.removed, *self.queries.inserted]] = torch.nan
        return apart

    def table(self) -> "pandas.DataFrame":
        """Return one row per cell.

        Columns query, query_token, key, key_token, weight, other_weight, difference, query_written, key_written,
        other_query_token, other_key_token. A token is the tokenizer's own subword token, such as "Ġbank", of the first
        text; the other text's token has its own column, because one may replace another. Written is the readable form,
        "·bank" or "·river→city". `query` and `key` count along the common axes; NaN if a text lacks the token. `attrs`
        has the alignment ("align"), the number of rows in the mean ("rows"), and of rows that can't differ ("shared").
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
        """Return the mean divergence of rows that both have and that can differ, without padding; NaN without any."""
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
    """Compare two heads on common axes, row by row.

    Equal tokens of the two texts are aligned, and words that replace each other pair up one by one. The mean leaves out
    rows that can't differ: a decoder's, while both texts are still the same. If the models split words into different
    subword tokens, compare the traces' `merge_words`, which aligns words.

    Args:
        one: the first run.
        other: the second: of another text, of another model, with edits, or the same run for two of its heads.
        layer: the number of the first head's layer, the model's own.
        head: the first head, from 0.
        other_layer: the second head's layer; as the first by default.
        other_head: the second head; as the first by default.
        stream: the first run's attention type, or "mixer" for layers without a softmax, whose weights are signed; None
            for the only one.
        other_stream: the second run's; by default the first's if the second run has it.
        align: "position" pairs a word with its replacement in the other text, if the two texts differ in equally many
            words there; "token" pairs only equal tokens, in any position, for texts whose words were moved.

    Raises:
        TraceError: the layer or stream is missing.
        ShapeError: the head or the way to align is missing.
    """
    streams = streams_of(one, other, stream, other_stream)
    first = Side(one, streams[0], layer, head)
    second = Side(
        other, streams[1], layer if other_layer is None else other_layer, head if other_head is None else other_head
    )
    queries, keys = axes_of(one, other, streams, align)
    apart = torch.full((len(queries),), torch.nan, dtype=torch.float64)
    mixes = first.mixes, second.mixes
    apart[list(queries.both)] = rows_apart(*on_rows(first.weights, second.weights, queries, keys), mixes)
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
    """Return each run's compared attention type."""
    first = one.stream(stream)
    second = other.stream(first if other_stream is None and first in other.streams else other_stream)
    if other_stream is None and (first in one.mixers) != (second in other.mixers):
        raise TraceError(f"the first is its {first}, and the second has none; choose its stream with other_stream=")
    return first, second


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


def rows_apart(
    one: Float[Tensor, "*heads row key"], other: Float[Tensor, "*heads row key"], mixes: tuple[bool, bool]
) -> Float[Tensor, "*heads row"]:
    """Return rows' divergence in bits; of signed weights, if a side `mixes`, that of signed shares of size."""
    if not any(mixes):
        return divergence(one, other)
    # A softmax takes nothing away.
    first, second = (
        signed_shares(rows) if own else torch.nn.functional.pad(rows, (0, rows.shape[-1]))
        for rows, own in zip((one, other), mixes, strict=True)
    )
    return divergence(first, second)


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
    far = "no comparable row" if math.isnan(comparison.mean) else f"{comparison.mean:.6f} bits over {counted}"
    rows.append(("mean divergence", far))
    if comparison.shared:
        rows.append(("left out", f"{len(comparison.shared)} rows that can't differ, because both texts begin alike"))
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
    return "missing" if math.isnan(weight) else f"{weight:.4f}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
