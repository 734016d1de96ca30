"""Export a trace as a table and HTML, and one head's tensors as safetensors."""

import csv
import functools
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from os import PathLike
from typing import Any, cast

import numpy
import pandas
from safetensors.torch import save
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import terms_of
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.files.arrow import PLACES, Column, described, schema_of, write_groups
from attention_viz.trace.kept import KeptLayers, chosen_layers, layers_in_words
from attention_viz.trace.spelling import table_in_html
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import TraceData

# The tokenizer's own pieces first; as people read them, such as "·bank" for "Ġbank", after what was there before them.
WEIGHT_COLUMNS = {
    **PLACES,
    "query": Column("the position of the attending token, from 0"),
    "query_token": Column("the attending token, as the tokenizer writes it"),
    "key": Column("the position of the token that is attended to, from 0"),
    "key_token": Column("the token that is attended to, as the tokenizer writes it"),
    "weight": Column(
        "the attention weight; a query's sum to 1, or are signed in a layer without a softmax", "share of the query"
    ),
    "query_written": Column("the attending token in readable form"),
    "key_written": Column("the token that is attended to, in readable form"),
}
COLUMNS = tuple(WEIGHT_COLUMNS)
# Rows of a Parquet file's row group; fewer if a head ends.
GROUP = 2**20

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
    chosen = _chosen(trace, layer, head, stream, layers)
    rows = sum(_rows_of(trace, *one[:2]) for one in chosen)
    report = ahead("Trace.table", rows, rows / ROWS_A_SECOND, progress)
    pieces: list[pandas.DataFrame] = []
    for done, (name, number, one) in enumerate(chosen, start=1):
        pieces.append(_head_table(trace, number, one, name))
        report(done / len(chosen))
    table = pandas.concat(pieces, ignore_index=True) if pieces else pandas.DataFrame(columns=list(COLUMNS))
    return described(table, WEIGHT_COLUMNS)


def write_weights(
    trace: TraceData,
    path: str | PathLike[str],
    part: tuple[int | None, int | None, str | None, Sequence[int] | None],
    progress: Progress | None,
    heads: Sequence[int] | None = None,
    start: int = 0,
) -> None:
    """Write one row per weight to a Parquet file; see `Trace.to_parquet`.

    Args:
        part: layer, head, stream and layers, as in `weights_table`.
        heads: the model's numbers of the trace's heads, if they are others.
        start: the position of the first row.
    """
    import pyarrow

    chosen = _chosen(trace, *part)
    rows = sum(_rows_of(trace, *one[:2]) for one in chosen)
    report = ahead("Trace.to_parquet", rows, rows / ROWS_A_SECOND, progress)
    text, number = pyarrow.string(), pyarrow.int64()
    kinds = {name: text if name.endswith(("stream", "token", "written")) else number for name in COLUMNS}
    about = json.dumps(trace.provenance.as_dict())
    schema = schema_of({**kinds, "weight": pyarrow.float32()}, WEIGHT_COLUMNS, about)

    def groups() -> Generator[Any]:
        done = 0
        for name, layer, head in chosen:
            queries, keys = trace.attention(layer, name).shape[-2:]
            step = max(1, GROUP // max(1, keys))
            for first in range(0, queries, step):
                table = _head_table(trace, layer, head, name, range(first, min(first + step, queries)))
                table = table.assign(head=head if heads is None else heads[head], query=table["query"] + start)
                yield pyarrow.Table.from_pandas(table, schema, preserve_index=False)
                done += len(table)
                report(done / rows)

    write_groups(path, groups(), schema)


def _chosen(
    trace: TraceData, layer: int | None, head: int | None, stream: str | None, layers: Sequence[int] | None
) -> list[tuple[str, int, int]]:
    """Return the stream, layer and head of each selected matrix."""
    if layer is not None and layers is not None:
        raise ShapeError(f"pass layer or layers, not both; got layer={layer!r} and layers={layers!r}")
    numbers = {name: kept.numbers for name, kept in some_layers(trace, layers).items()}
    numbers |= {name: tuple(trace.layer_numbers(name)) for name in trace.mixers}
    if layers is not None:
        numbers |= {name: tuple(one for one in numbers[name] if one in layers) for name in trace.mixers}
    if stream is not None:
        streams = [trace.stream(stream)]
    elif layer is not None:
        # Not every stream has each layer; the first refuses one that isn't there.
        streams = [name for name in numbers if layer in numbers[name]] or list(numbers)[:1]
    else:
        streams = list(numbers)
    return [
        (name, number, one)
        for name in streams
        for number in (numbers.get(name, ()) if layer is None else (layer,))
        for one in (range(trace.head_count(number, name)) if head is None else (head,))
    ]


def _rows_of(trace: TraceData, stream: str, layer: int) -> int:
    """Count one head's weights."""
    return math.prod(trace.attention(layer, stream).shape[1:])


def some_layers(trace: TraceData, layers: Sequence[int] | None) -> dict[str, KeptLayers]:
    """Choose a trace's attention layers by stream; by default all kept ones. Those of mixers are passed over."""
    if layers is None:
        return dict(trace.kept)
    mixing = {number for stream in trace.mixers for number in trace.layer_numbers(stream)}
    attending = {number for kept in trace.kept.values() for number in kept.every}
    others = [one for one in layers if one in mixing - attending]
    if others and len(others) == len(layers):
        return {}
    found = dict(chosen_layers([one for one in layers if one not in others] if others else layers, trace.kept))
    for stream, wanted in found.items():
        for number in wanted.numbers:
            _ = trace.attention(number, stream)
    return found


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


def _head_table(trace: TraceData, layer: int, head: int, stream: str, some: range | None = None) -> pandas.DataFrame:
    """Return one head's weights, or those of some of its rows."""
    call = cast("Attention | TokenMixer", trace.attention(layer, stream)).head(head)
    weights = (call if some is None else call.rows(list(some))).weights.detach().float().cpu().numpy()
    first = 0 if some is None else some.start
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    rows, columns = weights.shape
    return pandas.DataFrame(
        {
            "stream": stream,
            "layer": layer,
            "head": head,
            "query": numpy.repeat(numpy.arange(first, first + rows), columns),
            "query_token": numpy.repeat(numpy.array(_writable(queries)[first:][:rows], dtype=object), columns),
            "key": numpy.tile(numpy.arange(columns), rows),
            "key_token": numpy.tile(numpy.array(_writable(keys), dtype=object), rows),
            "weight": weights.ravel(),
            "query_written": numpy.repeat(numpy.array(queries.written[first:][:rows], dtype=object), columns),
            "key_written": numpy.tile(numpy.array(keys.written, dtype=object), rows),
        },
        columns=list(COLUMNS),
    )


def _writable(tokens: Tokens) -> list[str]:
    """Spell out lone surrogates, which files and data frames refuse."""
    return [label.encode("utf-8", "backslashreplace").decode("utf-8") for label in tokens.labels]


def head_tensors(trace: TraceData, layer: int, head: int, stream: str | None = None) -> dict[str, Tensor]:
    """Return one head's steps in order, each 2-D.

    A layer without a softmax has its known terms, such as `decay` and `write`, then `weights`, signed, and `output`.

    Returns:
        `query`, `key` (n, d_k), `value` (n, d_v), `scores` query·keyᵀ unscaled, `scaled` before any softcap, `masked`
            with −∞ if blocked, `weights`, `output` (n, d_v); if known (n, d_model): `embeddings`, the layer's input,
            `source`, cross-attention's key and value input, and `joined`, all heads projected.
    """
    call = cast("Attention | TokenMixer", trace.attention(layer, stream))
    if isinstance(call, TokenMixer):
        return _mixer_tensors(call.head(head))
    entry = trace.layer(layer, stream)
    one = entry.attention.head(head)
    around = {"embeddings": entry.embeddings, "source": entry.source, "joined": entry.joined}
    steps = {name: getattr(one, name) for name in _STEPS}
    return steps | {name: tensor for name, tensor in around.items() if tensor is not None}


def _mixer_tensors(mixer: TokenMixer) -> dict[str, Tensor]:
    terms = {term.name: getattr(mixer, term.name) for term in terms_of(TokenMixer)}
    steps = {name: value for name, value in terms.items() if isinstance(value, Tensor)}
    return {**steps, "weights": mixer.weights, "output": mixer.output}


def to_safetensors(
    trace: TraceData,
    layer: int,
    head: int,
    stream: str | None = None,
    tensors: Callable[[], Mapping[str, Tensor]] | None = None,
) -> bytes:
    """Serialize one head's steps, by default `head_tensors`, with provenance and tokens in the JSON header."""
    stream = trace.stream(stream)
    call = cast("Attention | TokenMixer", trace.attention(layer, stream))
    steps = head_tensors(trace, layer, head, stream) if tensors is None else tensors()
    written = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in steps.items()}
    origin = {
        "provenance": {**trace.provenance.as_dict()},
        "stream": stream,
        "layer": layer,
        "head": head,
        "query_tokens": trace.query_tokens(stream).labels,
        "key_tokens": trace.key_tokens(stream).labels,
        "scale": call.scale,
    }
    if isinstance(call, TokenMixer):
        origin |= {"kind": call.kind, "per": call.per, "exponent": call.exponent, "epsilon": call.epsilon}
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
    rows += [("generated", words)] if (words := origin.generated_in_words) else []
    if words := origin.stored_in_words:
        rows.append(("stored", words))
    if origin.added:
        rows.append(("added", f"{' and '.join(origin.added)}: ones, so the model reads every position"))
    for stream, layers in trace.layers.items():
        heads, queries, keys = layers[0].attention.shape
        note = f" ({trace.kept[stream].note})" * bool(trace.kept[stream].note)
        rows.append((stream, f"{trace.kept[stream]}{note}, {heads} heads, {queries} × {keys} tokens"))
        rows.append(
            (
                "tokens" if len(trace.attention_streams) == 1 else f"tokens of the {stream}",
                _named(trace.queries[stream]),
            )
        )
    for stream, found in trace.mixers.items():
        rows.append((stream, _mixers_in_words(trace, stream, [layer.mixer for layer in found])))
    if trace.mixers and not trace.layers:
        rows.append(("tokens", _named(trace.query_tokens(next(iter(trace.mixers))))))
    if origin.output:
        rows.append(("output", f"{origin.output}, {' × '.join(map(str, trace.output_shape))}"))
    fidelity = vars(trace).get("fidelity")
    if fidelity is not None:
        said = "verified" if fidelity.ok else "not verified"
        far = "" if fidelity.largest_error is None else f"{fidelity.largest_error:.1e} off "
        rows.append(("fidelity", f"{said}: {far}{fidelity.reference}"))
    return table_in_html([], rows)


def _mixers_in_words(trace: TraceData, stream: str, mixers: Sequence[TokenMixer]) -> str:
    first, numbers = mixers[0], layers_in_words(trace.layer_numbers(stream))
    counts = " or ".join(dict.fromkeys(f"{one.shape[0]} {one.per}s" for one in mixers))
    kinds = ", ".join(dict.fromkeys(one.kind for one in mixers))
    return f"{numbers} ({kinds}), {counts}, {first.shape[-2]} × {first.shape[-1]} tokens"


def _named(tokens: Tokens) -> str:
    return _shortened(" ".join(tokens.written))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
