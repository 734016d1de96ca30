"""Sum heads' weights from each segment of a chat to each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, fusible, without_autocast
from attention_viz.operation.cutting import between, first
from attention_viz.operation.reach import is_causal
from attention_viz.operation.shapes import widened
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.chat.segments import segment_names
from attention_viz.trace.export import some_layers
from attention_viz.trace.given.from_weights import softmax_stream
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["OTHER", "SINK", "SegmentAxis", "segment_table", "segment_weights"]

# The first token's column, and the tokens of no segment.
SINK, OTHER = "sink", "other"
COLUMNS = ("layer", "head", "from_segment", "to_segment", "weight")
# Weights in memory at a time, 64 MiB in float32; weights a second, on two cores.
AT_ONCE, WEIGHTS_A_SECOND = 2**24, 1e9


@dataclass(frozen=True, eq=False)
class SegmentAxis:
    """A text's positions by segment.

    Attributes:
        rows: the segments' names in order, then "other" if any token is in none.
        of_position: each position's index in `rows`.
    """

    rows: tuple[str, ...]
    of_position: Int[Tensor, " position"]

    @classmethod
    def of(cls, trace: Trace) -> "SegmentAxis":
        """Assign each token of the text to its segment.

        Raises:
            TraceError: the trace has no segments.
        """
        segments, count = trace.segments, len(trace.query_tokens(trace.text_stream))
        if not segments:
            why = next((note for note in trace.provenance.notes if "segments are unknown" in note), "")
            raise TraceError(
                "this trace has no segments; trace a chat's messages, or set them with "
                "trace.with_segments([av.Segment(role, start, end), …])" + (f". {why}" if why else "")
            )
        found = torch.full((count,), len(segments))
        for number, one in enumerate(segments):
            found[one.start : one.end] = number
        other = (OTHER,) if bool((found == len(segments)).any()) else ()
        return cls((*segment_names(segments), *other), found)

    @property
    def columns(self) -> tuple[str, ...]:
        """The first token's column, then the rows' names."""
        return (SINK, *self.rows)

    @once
    def counts(self) -> Float[Tensor, " row"]:
        """Count each row's tokens."""
        return torch.bincount(self.of_position, minlength=len(self.rows)).double()

    @once
    def keys(self) -> Float[Tensor, "position column"]:
        """Mark each token's column."""
        columns = self.of_position + 1
        columns[0] = 0
        return torch.nn.functional.one_hot(columns, len(self.columns)).float()

    @once
    def queries(self) -> Float[Tensor, "row position"]:
        """Mark each row's tokens."""
        return torch.nn.functional.one_hot(self.of_position, len(self.rows)).double().T


def segment_table(
    trace: Trace,
    stream: str | None = None,
    *,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> "pandas.DataFrame":
    """Return how much each head's rows of one segment give to each segment of a chat.

    A weight is the mean over a segment's rows of the summed weights on another segment's tokens, exact for every row.
    The first token has a column of its own, "sink", because many heads rest there: its segment's column leaves it out.
    Tokens of no segment, such as the chat template's own, are "other". The weights of one head and `from_segment` sum
    to 1; to less in a model with learned sinks, which take a share of each row. Equal roles are numbered, "user 1".

    Work of more than ten seconds warns of its weight count and duration first, then prints its progress to standard
    error. Memory stays within a few hundred megabytes, whatever the text's length.

    Args:
        trace: a chat's trace, or one with segments set by `trace.with_segments`.
        stream: the attention type; None for the text's.
        layers: only these layers; by default all that the trace keeps.
        progress: called after each layer with the share done, from 0 to 1, instead of printing; an exception from it
            stops the work.

    Returns:
        Columns layer, head, from_segment, to_segment, weight, float64; one row per head and pair of segments.

    Raises:
        TraceError: the trace has no segments, not all rows, or no softmax attention; or the stream is missing or reads
            another text.
        ShapeError: no such layers.
    """
    import pandas

    stream, axis = _checked(trace, stream)
    numbers = [one for one in trace.layer_numbers(stream) if one in some_layers(trace, layers)[stream].numbers]
    cells = sum(trace.attention(number, stream).shape[0] for number in numbers) * len(axis.of_position) ** 2
    report = ahead("segment_table", cells, cells / WEIGHTS_A_SECOND, progress, "weights")
    found = dict[str, list[object]]({name: [] for name in COLUMNS})
    pairs = [(row, column) for row in axis.rows for column in axis.columns]
    for done, number in enumerate(numbers, start=1):
        weights = segment_weights(trace.attention(number, stream), axis)
        for head, one in enumerate(weights):
            found["layer"] += [number] * len(pairs)
            found["head"] += [head] * len(pairs)
            found["from_segment"] += [row for row, _ in pairs]
            found["to_segment"] += [column for _, column in pairs]
            found["weight"] += one.flatten().tolist()
        report(done / len(numbers))
    return pandas.DataFrame(found, columns=list(COLUMNS))


def _checked(trace: Trace, stream: str | None) -> tuple[str, SegmentAxis]:
    if stream is None and trace.text_stream in trace.attention_streams:
        stream = trace.text_stream
    stream = softmax_stream(trace, stream, "a segment table")
    if stream != trace.text_stream:
        raise TraceError(f"segments are of the {trace.text_stream}'s text; choose stream={trace.text_stream!r}")
    if any(trace.key_tokens(stream).slots) and not any(trace.query_tokens(stream).slots):
        raise TraceError("a segment table needs the same tokens in rows and columns; this model adds keys")
    if len(trace.query_tokens(stream)) != len(trace.key_tokens(stream)):
        raise TraceError("a segment table needs every row, but this trace keeps some; trace the text without queries=")
    return stream, SegmentAxis.of(trace)


@without_autocast()
def segment_weights(call: Attention, axis: SegmentAxis) -> Float[Tensor, "*head row column"]:
    """Return a call's mean summed weight from each segment to each column, in float64; tile by tile.

    Raises:
        ShapeError: the call has other positions than the text.
    """
    *lead, queries, keys = call.shape
    if not queries == keys == len(axis.of_position):
        raise ShapeError(f"the call needs {len(axis.of_position)} queries and keys; got {queries} and {keys}")
    found = torch.zeros(*lead, len(axis.rows), len(axis.columns), dtype=torch.float64)
    for start, summed in _summed(call, axis.keys):
        found += axis.queries[:, start : start + summed.shape[-2]] @ summed.double()
    return found / axis.counts[:, None]


def _summed(call: Attention, keys: Tensor) -> Iterator[tuple[int, Float[Tensor, "*head query column"]]]:
    """Yield each row's weight on each column, some rows at a time, with the first row's number."""
    if not fusible(call):
        for start, weights in _tiles(call):
            yield start, weights @ keys[: weights.shape[-1]]
        return
    # What a row gives to a column is its output where a value is 1 for the column's keys and 0 for others: torch's
    # fused kernel adds it up without the weights in memory. It needs values as wide as queries.
    width, query, key = call.query.shape[-1], widened(call.query.detach()), widened(call.key.detach())
    bias = None if call.bias is None else call.bias.detach().to(query.dtype)
    parts = list[Tensor]()
    for some in keys.to(query).split(width, dim=-1):
        value = torch.nn.functional.pad(some, (0, width - some.shape[-1])).expand(*key.shape[:-1], width)
        marked = replace(call, query=query, key=key, value=value, bias=bias)
        parts.append(marked.output[..., : some.shape[-1]].float().cpu())
    yield 0, torch.cat(parts, dim=-1)


def _tiles(call: Attention) -> Iterator[tuple[int, Float[Tensor, "*head row key"]]]:
    """Yield blocks of rows with all keys that they may attend to, and each block's first row."""
    *lead, queries, keys = call.shape
    closed = is_causal(call.allowed, (queries, keys))
    start = 0
    while start < queries:
        rows = max(1, min(queries - start, AT_ONCE // (math.prod(lead) * keys)))
        end = start + rows
        cut = first(call, queries=end, keys=end) if closed else call
        yield start, between(cut, start, end).weights.detach().float().cpu()
        start = end
