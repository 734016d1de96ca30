"""A trace's weights as a table for spreadsheets and data frames."""

import csv
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import pandas

from attention_viz.errors import ShapeError
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.numbered.by_number import some_layers

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

__all__ = ["COLUMNS", "inert", "to_csv", "weights_table"]

# The tokenizer's own pieces first; as people read them, such as "·bank" for "Ġbank", after what was there before them.
COLUMNS = (
    "stream",
    "layer",
    "head",
    "query",
    "query_token",
    "key",
    "key_token",
    "weight",
    "query_written",
    "key_written",
)

# What two cores of 2023 do in a second.
ROWS_A_SECOND = 2e6

# What a spreadsheet takes for the start of a formula (OWASP, "CSV Injection"), the full-width forms included.
_FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r\n")


def weights_table(
    trace: "Trace",
    layer: int | None,
    head: int | None,
    stream: str | None,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> pandas.DataFrame:
    """Return one row per weight; None stands for all; see `Trace.table`."""
    if layer is not None and layers is not None:
        raise ShapeError(f"layer={layer!r} and layers={layers!r} were both given; one of them says which layers")
    kept = some_layers(trace, layers)
    streams = kept if stream is None else (trace.stream(stream),)
    chosen = [
        (name, number, one)
        for name in streams
        for number in ((kept[name].numbers if name in kept else ()) if layer is None else (layer,))
        for one in (range(trace.head_count(number, name)) if head is None else (head,))
    ]
    rows = sum(math.prod(trace.attention(number, name).shape[1:]) for name, number, _ in chosen)
    report = ahead("Trace.table", rows, rows / ROWS_A_SECOND, progress)
    pieces: list[pandas.DataFrame] = []
    for done, (name, number, one) in enumerate(chosen, start=1):
        pieces.append(_head_table(trace, number, one, name))
        report(done / len(chosen))
    return pandas.concat(pieces, ignore_index=True) if pieces else pandas.DataFrame(columns=list(COLUMNS))


def to_csv(table: pandas.DataFrame) -> str:
    """Write CSV that no spreadsheet executes, without the index.

    All text is quoted; formulas get a leading apostrophe. Numbers keep 9 significant digits for float32's round trip;
    missing numbers are empty.
    """
    safe = {name: _safe(column) for name, column in table.items()}
    body = pandas.DataFrame(safe).to_csv(index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    return ",".join(map(str, table.columns)) + "\n" + body


def _safe(column: pandas.Series) -> "pandas.Series | list[Any]":
    """Write text that is no formula, and numbers with 9 digits."""
    if column.dtype.kind == "f":
        return [float(f"{number:.9g}") for number in column]
    if column.dtype.kind in "iub":
        return column
    return [inert(value) if isinstance(value, str) else value for value in column]


@functools.lru_cache(maxsize=4096)  # a sentence's labels come back in every row
def inert(text: str) -> str:
    """Defuse formulas, also behind blank or invisible characters."""
    visible = "".join(c for c in text if c.isprintable() and not c.isspace())
    return "'" + text if text.startswith(_FORMULA_STARTS) or visible.startswith(_FORMULA_STARTS) else text


def _head_table(trace: "Trace", layer: int, head: int, stream: str) -> pandas.DataFrame:
    weights = trace.weights(layer, head, stream).detach().float().cpu().numpy()
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    rows, columns = weights.shape
    return pandas.DataFrame(
        {
            "stream": stream,
            "layer": layer,
            "head": head,
            "query": numpy.repeat(numpy.arange(rows), columns),
            "query_token": numpy.repeat(numpy.array(_writable(queries), dtype=object), columns),
            "key": numpy.tile(numpy.arange(columns), rows),
            "key_token": numpy.tile(numpy.array(_writable(keys), dtype=object), rows),
            "weight": weights.ravel(),
            "query_written": numpy.repeat(numpy.array(queries.written, dtype=object), columns),
            "key_written": numpy.tile(numpy.array(keys.written, dtype=object), rows),
        },
        columns=list(COLUMNS),
    )


def _writable(tokens: "Tokens") -> list[str]:
    """Spell out lone surrogates, which files and data frames refuse."""
    return [label.encode("utf-8", "backslashreplace").decode("utf-8") for label in tokens.labels]
