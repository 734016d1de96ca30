"""List the keys that a model's indexers could pick for each query, with their scores."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from attention_viz.trace.given.from_weights import softmax_stream
from attention_viz.trace.picking import Picking
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["picked_table"]

COLUMNS = ("layer", "heads", "query", "query_token", "key", "key_token", "score", "margin", "picked")


def picked_table(trace: Trace, layer: int | None = None, stream: str | None = None) -> "pandas.DataFrame":
    """Return one row per query and key that an indexer could pick, such as DeepSeek V3.2's or MiniMax M3's.

    A query attends only to picked keys. `margin` is the score minus the query's cut, its lowest picked score: below 0
    if the key was left out. `score` is infinite for keys that are always picked. `heads` has those that share the
    selection. Layers that left no key out, and texts of more than 1,024 tokens, have no rows.

    Args:
        trace: a trace of a model with indexers.
        layer: the model's number of a layer; None for all.
        stream: the stream; None if there is only one.

    Raises:
        ShapeError: no such layer or stream.
    """
    import pandas

    stream = softmax_stream(trace, stream, "a table of picked keys")
    numbers = trace.layer_numbers(stream) if layer is None else [layer]
    queries, keys = trace.query_tokens(stream).labels, trace.key_tokens(stream).labels
    pieces = list[pandas.DataFrame]()
    for number in numbers:
        one = trace.layer(number, stream)
        for heads, picking in _selections(one.picking, one.attention.shape[0]):
            rows, columns = (picking.scores > -np.inf).cpu().numpy().nonzero()
            scores, margins, picked = (
                tensor.float().cpu().numpy()[rows, columns]
                for tensor in (picking.scores, picking.margins, picking.picked)
            )
            pieces.append(
                pandas.DataFrame(
                    {
                        "layer": number,
                        "heads": heads,
                        "query": rows,
                        "query_token": [queries[row] for row in rows],
                        "key": columns,
                        "key_token": [keys[column] for column in columns],
                        "score": scores,
                        "margin": margins,
                        "picked": picked > 0,
                    },
                    columns=list(COLUMNS),
                )
            )
    return pandas.concat(pieces, ignore_index=True) if pieces else pandas.DataFrame(columns=list(COLUMNS))


def _selections(picking: Picking | None, heads: int) -> Iterator[tuple[str, Picking]]:
    """Return each selection, with the heads that share it in words."""
    count = 0 if picking is None else len(picking.scores)
    for at in range(count):
        assert picking is not None
        first, last = at * heads // count, (at + 1) * heads // count - 1
        yield str(first) if first == last else f"{first}–{last}", picking.head(first, heads)
