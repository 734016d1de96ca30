"""Weights behind a site's examples, from rerun texts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.words import token_named
from attention_viz.explorer.payload import Choice, pack
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace


class Wanted(NamedTuple):
    """One query of one head in a text."""

    stream: str
    layer: int
    head: int
    query: int


class SiteRow(NamedTuple):
    """A query's weights over a text.

    Attributes:
        asking: the query's token if on another axis; else empty.
        packed: the whole layer for the explorer, on request.
    """

    tokens: tuple[str, ...]
    weights: tuple[float, ...]
    asking: str
    packed: bytes = b""


def rows_of(
    runs: Iterable[tuple[int, Trace]],
    wanted: Mapping[int, Iterable[Wanted]],
    explored: Mapping[tuple[int, Wanted], int],
) -> Iterator[tuple[tuple[int, Wanted], SiteRow]]:
    """Yield the row of each wanted query."""
    for number, trace in runs:
        for one in wanted.get(number, ()):
            call = trace.attention(one.layer, one.stream).head(one.head).rows([one.query])
            queries, keys = trace.query_tokens(one.stream), trace.key_tokens(one.stream)
            asking = queries.names[one.query] if one.stream == "cross" else ""
            weights = tuple(call.weights[0].float().tolist())
            key = explored.get((number, one))
            packed = b"" if key is None else _packed(trace, one, key, weights[key])
            yield (number, one), SiteRow(keys.names, weights, asking, packed)


def _packed(trace: Trace, one: Wanted, key: int, weight: float) -> bytes:
    layer = trace.layers[one.stream][trace.layer_numbers(one.stream).index(one.layer)]
    alone = Trace(
        {one.stream: (layer,)},
        {one.stream: trace.query_tokens(one.stream)},
        {one.stream: trace.key_tokens(one.stream)},
        trace.output,
        trace.provenance,
        trace.fidelity,
        {one.stream: replace(trace.kept[one.stream], numbers=(one.layer,))},
    )
    return pack(alone, choice=Choice(one.stream, one.layer, one.head), findings=[_pair(trace, one, key, weight)])


def _pair(trace: Trace, one: Wanted, key: int, weight: float) -> Finding:
    looking, seen = (
        token_named(tokens, place)
        for tokens, place in ((trace.query_tokens(one.stream), one.query), (trace.key_tokens(one.stream), key))
    )
    parts = (looking, "query"), (" looks at ", ""), (seen, "key"), (": ", ""), (weight_text(weight), "number")
    return Finding("link", one.stream, one.layer, one.head, one.query, key, weight, parts)
