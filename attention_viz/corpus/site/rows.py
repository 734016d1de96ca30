"""The rows of weights behind the examples that a site shows, from their texts run once more."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from attention_viz.trace.trace import Trace

__all__ = ["Row", "Wanted", "rows_of"]


class Wanted(NamedTuple):
    """One query of one head in a text."""

    stream: str
    layer: int
    head: int
    query: int


class Row(NamedTuple):
    """What a query gave to each token of a text.

    Attributes:
        tokens: as people read them.
        weights: of each.
        asking: the token that asks, where it stands along another axis; empty where it is one of the tokens.
    """

    tokens: tuple[str, ...]
    weights: tuple[float, ...]
    asking: str


def rows_of(
    runs: Iterable[tuple[int, Trace]], wanted: Mapping[int, Iterable[Wanted]]
) -> Iterator[tuple[tuple[int, Wanted], Row]]:
    """The row of each query that is wanted.

    Args:
        runs: the number of each text, and its run.
        wanted: by the number of a text, which queries.
    """
    for number, trace in runs:
        for one in wanted.get(number, ()):
            call = trace.attention(one.layer, one.stream).head(one.head).rows([one.query])
            queries, keys = trace.query_tokens(one.stream), trace.key_tokens(one.stream)
            asking = queries.written[one.query] if one.stream == "cross" else ""
            yield (number, one), Row(keys.written, tuple(call.weights[0].float().tolist()), asking)
