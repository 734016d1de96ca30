"""Divergence of two runs, head by head."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.comparison.align import Alignment
from attention_viz.analysis.comparison.compare import Side, axes_of, on_rows, streams_of
from attention_viz.analysis.comparison.shared_rows import shared_rows
from attention_viz.analysis.likeness import divergence
from attention_viz.errors import TraceError
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
    """Which heads differ most between two runs: a row a head, the most different first.

    Args:
        a: the first run.
        b: the second: of another text, of another model of the same size, or with edits.
        stream: of the first; the only one there is, if none is named.
        other_stream: of the second; by default the first's where the second run has it.
        head: (layer, head) of the first run that every head of the second is compared with; by default each with the
            same head of the other run.
        align: "position" to compare a word with the one that stands in its place in the other text; "token" to compare
            the same tokens only, for texts whose words were moved. As in `compare`.

    Returns:
        Index (layer, head) of the second run; columns divergence, the mean Jensen–Shannon divergence of its rows in
        bits, from 0, equal, to 1, nothing in common; and rows, over how many it is taken. Rows that can't differ, as
        a decoder's where both texts are still the same, are left out: `attrs["shared"]` says how many. NaN and last
        where the texts have no token in common. `attrs["align"]` says how tokens were aligned.

    Raises:
        TraceError: there is no such layer or stream, or the runs don't have the same heads and `head` isn't told.
        ShapeError: there is no such head, or no such way to align.
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
            "each head can be compared with the same head of another run where both keep the same layers; got "
            f"{one.kept[streams[0]]} and {other.kept[streams[1]]}. Two of them can be compared in any case"
        )
    if head is None and counts[0] != counts[1]:
        raise TraceError(
            "each head can be compared with the same head of another run where both have the same heads; got "
            f"{_sizes(counts[0])} and {_sizes(counts[1])}. Two of them can be compared in any case"
        )
    queries, keys = axes_of(one, other, streams, align)
    counted = [queries.counted[place] for place in queries.both]
    shared = set(shared_rows(one, other, queries))
    differing = [counts and place not in shared for place, counts in zip(queries.both, counted, strict=True)]
    fixed = None if head is None else Side(one, streams[0], *head).weights
    found = torch.full((len(counts[1]), max(counts[1])), torch.nan, dtype=torch.float64)
    for row, layer, count in zip(found, numbers, counts[1], strict=True):
        mine = other.attention(layer, streams[1]).weights.detach().cpu()
        theirs = fixed.expand(count, -1, -1) if fixed is not None else one.attention(layer, streams[0]).weights.detach()
        apart = divergence(*on_rows(theirs.cpu(), mine, queries, keys))
        row[:count] = apart[:, counted if head is not None else differing].mean(dim=-1)
        if shared and head is not None and head[0] == layer:  # the same head of both runs
            row[head[1]] = apart[head[1], differing].mean()
    return found


def _sizes(counts: list[int]) -> str:
    return f"{len(counts)} layers × {' or '.join(str(count) for count in sorted(set(counts)))} heads"
