"""Divergence of two runs, head by head."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.align import Alignment
from attention_viz.analysis.comparison.compare import Side, axes_of, on_rows, rows_apart, streams_of
from attention_viz.analysis.comparison.shared_rows import shared_rows
from attention_viz.errors import TraceError
from attention_viz.trace.kept import layers_in_words
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["divergences", "head_divergences"]


def head_divergences(
    a: Trace,
    b: Trace,
    *,
    stream: str | None = None,
    other_stream: str | None = None,
    head: tuple[int, int] | None = None,
    align: Alignment = "position",
) -> "pandas.DataFrame":
    """Rank heads by how much they differ between two runs: one row per head, the most different first.

    Args:
        a: the first run.
        b: the second: of another text, of another model of the same size, or with edits.
        stream: the first run's attention type; None for the only one. "mixer" has the layers without a softmax, whose
            rows are signed shares of size (see `Comparison.divergence`).
        other_stream: the second run's; by default the first's if the second run has it.
        head: (layer, head) of the first run to compare every head of the second with; by default each head is compared
            with the same head of the other run.
        align: "position" pairs a word with its replacement in the other text; "token" pairs only equal tokens, for
            texts whose words were moved. See `compare`.

    Returns:
        Index (layer, head) of the second run; columns divergence, the mean Jensen–Shannon divergence of its rows in
        bits, from 0, equal, to 1, nothing in common; and rows, the number of rows in the mean. Rows that can't differ,
        as a decoder's while both texts are still the same, are left out: `attrs["shared"]` counts them. NaN and last if
        the texts have no token in common. `attrs["align"]` is the alignment.

    Raises:
        TraceError: the layer or stream is missing, or the runs have different heads and `head` is missing.
        ShapeError: the head or the way to align is missing.
    """
    import pandas

    apart = divergences(a, b, stream=stream, other_stream=other_stream, head=head, align=align)
    streams = streams_of(a, b, stream, other_stream)
    queries, _ = axes_of(a, b, streams, align)
    counted, shared = sum(queries.counted), len(shared_rows(a, b, queries))
    found = [
        (layer, at, value, counted - shared if head in (None, (layer, at)) else counted)
        for layer, row in zip(b.layer_numbers(streams[1]), apart.tolist(), strict=True)
        for at, value in enumerate(row[: b.head_count(layer, streams[1])])
    ]
    table = pandas.DataFrame(found, columns=["layer", "head", "divergence", "rows"]).set_index(["layer", "head"])
    table = table.sort_values("divergence", ascending=False, kind="stable")
    table.attrs.update(align=align, shared=shared if head is None else 0)
    return table


def divergences(
    one: Trace,
    other: Trace,
    *,
    stream: str | None = None,
    other_stream: str | None = None,
    head: tuple[int, int] | None = None,
    align: Alignment = "position",
) -> Float[Tensor, "layer head"]:
    """Return each head's mean divergence in bits, (layer, head); NaN for heads or tokens that only one run has."""
    streams = streams_of(one, other, stream, other_stream)
    counts = [
        [trace.head_count(at, name) for at in trace.layer_numbers(name)]
        for trace, name in ((one, streams[0]), (other, streams[1]))
    ]
    numbers = other.layer_numbers(streams[1])
    if head is None and one.layer_numbers(streams[0]) != numbers:
        raise TraceError(
            f"comparing every head needs runs that keep the same layers; got {_layers(one, streams[0])} and "
            f"{_layers(other, streams[1])}. You can compare two single heads"
        )
    if head is None and counts[0] != counts[1]:
        raise TraceError(
            f"comparing every head needs runs with the same heads; got {_sizes(counts[0])} and {_sizes(counts[1])}. "
            "You can compare two single heads"
        )
    queries, keys = axes_of(one, other, streams, align)
    counted = [queries.counted[place] for place in queries.both]
    shared = set(shared_rows(one, other, queries))
    differing = [counts and place not in shared for place, counts in zip(queries.both, counted, strict=True)]
    mixes = streams[0] in one.mixers, streams[1] in other.mixers
    fixed = None if head is None else Side(one, streams[0], *head).weights
    found = torch.full((len(counts[1]), max(counts[1])), torch.nan, dtype=torch.float64)
    for row, layer, count in zip(found, numbers, counts[1], strict=True):
        mine = _weights(other, streams[1], layer)
        theirs = fixed.expand(count, -1, -1) if fixed is not None else _weights(one, streams[0], layer)
        apart = rows_apart(*on_rows(theirs, mine, queries, keys), mixes)
        row[:count] = apart[:, counted if head is not None else differing].mean(dim=-1)
        if shared and head is not None and head[0] == layer:  # the same head of both runs
            row[head[1]] = apart[head[1], differing].mean()
    return found


def _weights(trace: Trace, stream: str, layer: int) -> Float[Tensor, "head query key"]:
    return trace.attention(layer, stream).weights.detach().cpu()


def _layers(trace: Trace, stream: str) -> object:
    return trace.kept[stream] if stream in trace.kept else layers_in_words(trace.layer_numbers(stream))


def _sizes(counts: list[int]) -> str:
    return f"{len(counts)} layers × {' or '.join(str(count) for count in sorted(set(counts)))} heads"
