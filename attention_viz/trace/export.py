"""Export a trace as a table and HTML, and one head's tensors as safetensors."""

import csv
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import pandas
from safetensors.torch import save
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.kept import KeptLayers, chosen_layers
from attention_viz.trace.layers import sizes_in_words
from attention_viz.trace.spelling import table_in_html
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import TraceData

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
_STEPS = ("query", "key", "value", "scores", "scaled", "masked", "weights", "output")
_LONGEST = 300


def weights_table(
    trace: TraceData,
    layer: int | None,
    head: int | None,
    stream: str | None,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> pandas.DataFrame:
    """Return one row per weight; None selects all; see `Trace.table`."""
    if layer is not None and layers is not None:
        raise ShapeError(f"pass layer or layers, not both; got layer={layer!r} and layers={layers!r}")
    kept = _numbers(trace, stream, layers)
    chosen = [
        (name, number, one)
        for name, numbers in kept.items()
        for number in (numbers if layer is None else (layer,))
        for one in (range(trace.head_count(number, name)) if head is None else (head,))
    ]
    rows = sum(math.prod(trace.attention(number, name).shape[1:]) for name, number, _ in chosen)
    report = ahead("Trace.table", rows, rows / ROWS_A_SECOND, progress)
    pieces: list[pandas.DataFrame] = []
    for done, (name, number, one) in enumerate(chosen, start=1):
        pieces.append(_head_table(trace, number, one, name))
        report(done / len(chosen))
    return pandas.concat(pieces, ignore_index=True) if pieces else pandas.DataFrame(columns=list(COLUMNS))


def some_layers(trace: TraceData, layers: Sequence[int] | None) -> dict[str, KeptLayers]:
    """Choose a trace's layers of softmax attention by stream; by default all kept ones."""
    trace.check_attends()
    if layers is None:
        return dict(trace.kept)
    found = dict(chosen_layers(layers, trace.kept))
    for stream, wanted in found.items():
        for number in wanted.numbers:
            _ = trace.attention(number, stream)
    return found


def _numbers(trace: TraceData, stream: str | None, layers: Sequence[int] | None) -> dict[str, Sequence[int]]:
    """Return the layers by stream: by default of all softmax attention, or of all mixers if there is none."""
    if stream in trace.mixers or not trace.layers:
        names = tuple(trace.mixers) if stream is None else (trace.stream(stream),)
        every = {name: KeptLayers.all_of(trace.layer_numbers(name)) for name in names}
        return {name: one.numbers for name, one in (every if layers is None else chosen_layers(layers, every)).items()}
    kept = {name: one.numbers for name, one in some_layers(trace, layers).items()}
    return dict(kept) if stream is None else {stream: kept.get(trace.stream(stream), ())}


def to_csv(table: pandas.DataFrame) -> str:
    """Write CSV without formulas or an index; 9 digits keep float32 exact."""
    safe = {name: _safe(column) for name, column in table.items()}
    body = pandas.DataFrame(safe).to_csv(index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    return ",".join(map(str, table.columns)) + "\n" + body


def _safe(column: pandas.Series) -> "pandas.Series | list[Any]":
    """Defuse formulas in text and write numbers with 9 digits."""
    if column.dtype.kind == "f":
        return [float(f"{number:.9g}") for number in column]
    if column.dtype.kind in "iub":
        return column
    return [inert(value) if isinstance(value, str) else value for value in column]


@functools.lru_cache(maxsize=4096)  # a sentence's labels come back in every row
def inert(text: str) -> str:
    """Defuse formulas, also after blank or invisible characters."""
    visible = "".join(c for c in text if c.isprintable() and not c.isspace())
    return "'" + text if text.startswith(_FORMULA_STARTS) or visible.startswith(_FORMULA_STARTS) else text


def _head_table(trace: TraceData, layer: int, head: int, stream: str) -> pandas.DataFrame:
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


def _writable(tokens: Tokens) -> list[str]:
    """Spell out lone surrogates, which files and data frames refuse."""
    return [label.encode("utf-8", "backslashreplace").decode("utf-8") for label in tokens.labels]


def head_tensors(trace: TraceData, layer: int, head: int, stream: str | None = None) -> dict[str, Tensor]:
    """Return one head's steps in order, each 2-D.

    Returns:
        `query`, `key` (n, d_k), `value` (n, d_v), `scores` query·keyᵀ unscaled, `scaled` before any softcap, `masked`
            with −∞ if blocked, `weights`, `output` (n, d_v); if known (n, d_model): `embeddings`, the layer's input,
            `source`, cross-attention's key and value input, and `joined`, all heads projected.
    """
    entry = trace.layer(layer, stream)
    one = entry.attention.head(head)
    around = {"embeddings": entry.embeddings, "source": entry.source, "joined": entry.joined}
    steps = {name: getattr(one, name) for name in _STEPS}
    return steps | {name: tensor for name, tensor in around.items() if tensor is not None}


def to_safetensors(
    trace: TraceData,
    layer: int,
    head: int,
    stream: str | None = None,
    tensors: Callable[[], Mapping[str, Tensor]] | None = None,
) -> bytes:
    """Serialize one head's steps, by default `head_tensors`, with provenance and tokens in the JSON header."""
    stream = trace.attention_stream(stream)
    steps = head_tensors(trace, layer, head, stream) if tensors is None else tensors()
    written = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in steps.items()}
    origin = {
        "provenance": {**trace.provenance.as_dict()},
        "stream": stream,
        "layer": layer,
        "head": head,
        "query_tokens": trace.query_tokens(stream).labels,
        "key_tokens": trace.key_tokens(stream).labels,
        "scale": trace.attention(layer, stream).scale,
    }
    return save(written, metadata={name: json.dumps(value) for name, value in origin.items()})


def trace_in_html(trace: TraceData) -> str:
    """List a trace's provenance and each stream's layer, head and token counts."""
    origin = trace.provenance
    rows: list[tuple[str, str]] = [("model", origin.model)]
    texts = (
        *origin.media.items(),
        ("text", origin.text),
        ("second text", origin.second_text),
        ("target", origin.target),
    )
    rows += [(name, _shortened(text)) for name, text in texts if text is not None]
    rows += [("notes", _shortened(one)) for one in origin.notes]
    rows += [("edited", _shortened(edit)) for edit in origin.edits]
    if words := origin.stored_in_words:
        rows.append(("stored", words))
    if origin.added:
        rows.append(("added", f"{' and '.join(origin.added)}: ones, so the model reads every position"))
    for stream, layers in trace.layers.items():
        heads, queries, keys = layers[0].attention.shape
        note = f" ({trace.kept[stream].note})" * bool(trace.kept[stream].note)
        rows.append((stream, f"{trace.kept[stream]}{note}, {heads} heads, {queries} × {keys} tokens"))
    rows += [(stream, size) for stream, size in sizes_in_words({}, {}, trace.mixers).items()]
    for stream, tokens in trace.queries.items():
        rows.append(("tokens" if len(trace.queries) == 1 else f"tokens of the {stream}", _named(tokens)))
    if origin.output:
        rows.append(("output", f"{origin.output}, {' × '.join(map(str, trace.output_shape))}"))
    fidelity = vars(trace).get("fidelity")
    if fidelity is not None:
        said = "verified" if fidelity.ok else "not verified"
        far = "" if fidelity.largest_error is None else f"{fidelity.largest_error:.1e} off "
        rows.append(("fidelity", f"{said}: {far}{fidelity.reference}"))
    return table_in_html([], rows)


def _named(tokens: Tokens) -> str:
    return _shortened(" ".join(tokens.written))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
