"""The immutable record of one pass through a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from typing import Any, Literal

# Only tables need it, and it is loaded with the first trace all the same: Plotly looks whether pandas is there, and
# fails on one that another thread of a server is just loading.
import pandas
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.ahead import Progress
from attention_viz.trace.chat.segments import Segment, check_segments, text_stream
from attention_viz.trace.export import trace_in_html, weights_table, write_weights
from attention_viz.trace.files.read import read_trace
from attention_viz.trace.files.write import write_trace
from attention_viz.trace.given.by_hand import GivenTrace
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.kind import STREAMS
from attention_viz.trace.layers import Layer, labels_of
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Relevance, Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import LayersByStream, MixersByStream, Output, attach, behind, by_row

__all__ = ["STREAMS", "Fidelity", "Layer", "Provenance", "Relevance", "Trace", "TracePart"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trace(GivenTrace):
    """The record of one pass through a model, layer by layer.

    It keeps each attention call's query, key, value and other terms, and computes weights when you read them.

    Attributes:
        layers: by stream ("encoder", "decoder", "picture" …, one of `STREAMS`), its kept attention layers in running
            order; empty in a model without softmax attention.
        queries: by stream, the tokens of the rows; under "mixer" without softmax attention.
        keys: by stream, the tokens of the columns.
        output: logits (position, vocabulary) if the model has a language-model head, else the last hidden state
            (position, d_model) or an embedding (position, width); `provenance.output` names it. A long text's logits
            are computed on demand and take gigabytes; `output_at` computes a few rows.
        provenance: the trace's origin.
        kept: by stream, which of the model's attention layers are kept. Name a layer by the model's own number.
        seen: the image or audio as the model read it; empty for text.
    """

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Each message's tokens in a chat: system, user, thinking, assistant, tool, and pictures.

        Positions are those of the text's tokens. The chat template's own tokens belong to no segment. Empty if the
        input isn't a chat, or if the template doesn't show where its messages are; `provenance.notes` then says so.
        """
        return self.provenance.segments

    def with_segments(self, segments: Sequence[Segment]) -> "Trace":
        """Return the trace with these segments in place of its own.

        If the last one is the assistant's or its thinking, and reaches the text's end, generated tokens continue it.

        Raises:
            TraceError: segments overlap, or one ends after the text.
        """
        count = len(self.query_tokens(self.text_stream))
        found = check_segments(segments, count)
        last = found[-1] if found and found[-1].end == count else None
        answer = None if last is None or last.role not in ("assistant", "thinking") else (last.role, last.start)
        return self.derived(provenance=replace(self.provenance, segments=found, answer=answer))

    def __copy__(self) -> "Trace":
        """Return the trace itself, which nothing changes."""
        return self

    def __deepcopy__(self, memo: object) -> "Trace":
        """Return the trace itself."""
        return self

    def __reduce__(self) -> Any:
        """Refuse to be pickled."""
        raise TraceError("a trace can't be pickled; write it by save(path), and read it by av.Trace.load(path)")

    @property
    def text_stream(self) -> str:
        """The stream whose tokens have segments: the encoder, else the decoder, else the first one."""
        return text_stream(self.streams)

    def table(
        self,
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Return one row per weight.

        The columns are stream, layer, head, query, query_token, key, key_token, weight, query_written, key_written. A
        token is the tokenizer's own subword token, such as "Ġbank"; written is its readable form, "·bank". Weights of
        the stream "mixer", layers without a softmax, are signed and don't sum to 1. If such a layer has a matrix per
        channel, head is the channel.

        Work of more than ten seconds warns of its row count and duration first, then prints its progress to standard
        error.

        Args:
            layer: only this layer; all by default.
            head: only this head; all by default.
            stream: only this stream, such as "mixer"; by default all of softmax attention, or all mixers if there is
                none. A mixer's weights are signed.
            layers: only these layers; all by default.
            progress: called after each head with the share done, from 0 to 1, instead of printing; an exception from it
                stops the work.

        Raises:
            TraceError: the layer or stream is missing.
            ShapeError: the head is missing, or you passed both layer and layers.
        """
        return weights_table(self, layer, head, stream, layers, progress)

    def to_parquet(
        self,
        path: str | PathLike[str],
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the rows of `table` to a Parquet file, without the whole table in memory.

        Each head has its own row groups, of a million rows or fewer. A field's metadata has its column's `description`
        and `unit`; the schema's has the trace's provenance as JSON, `attention_viz`. Other arguments are those of
        `table`.

        Args:
            path: an existing file stays until the new one is complete.

        Raises:
            TraceError: the layer or stream is missing.
            ShapeError: the head is missing, or you passed both layer and layers.
            OSError: the file can't be written.
        """
        write_weights(self, path, (layer, head, stream, layers), progress)

    def save(
        self,
        path: str | PathLike[str],
        *,
        layers: Sequence[int] | None = None,
        what: Literal["all", "terms", "weights"] = "all",
        dtype: Literal["float16", "float32"] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the trace to one file at exactly that path: safetensors with a JSON header.

        A file with only a part, or with rounded numbers, says so: after `load`, the provenance has the stored part and
        the largest absolute difference between a weight of the run and of the file, measured here over all weights.
        Work of more than ten seconds warns of its size and duration first, then prints its progress to standard error.

        Args:
            path: an existing file stays until the new one is complete.
            layers: only these layers, which keep their numbers; all by default.
            what: "all"; "terms", the calls' queries, keys, values, masks and biases without the tensors around them
                (embeddings, joined heads); or "weights" alone, with the limits of `from_weights`. Each keeps the
                output.
            dtype: rounds wider numbers to this type, and `load` widens them again; None keeps all. "float16" halves the
                file, and changes weights by 1e-4 to 1e-3 if scores are large.
            progress: called now and then with the share done, from 0 to 1, instead of printing; an exception from it
                stops the work, and nothing is written.

        Raises:
            TraceError: the path can't be written, a layer isn't kept, numbers are too large for the dtype, or only
                weights were to be saved of a layer with attention sinks.
            ShapeError: unknown `what` or `dtype`, or no such layers.
        """
        write_trace(self, path, layers=layers, what=what, dtype=dtype, progress=progress)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Read a trace from a file that `save` wrote.

        Raises:
            TraceError: the file is missing, broken, or not a trace.

        Warns:
            AttentionVizWarning: the file has rounded numbers or weights alone; the warning states the error.
        """
        found, cells = read_trace(Trace, path)
        return found if cells is None else TracePart.of(found, cells)

    def _repr_html_(self) -> str:
        return trace_in_html(self)

    def only(self, stream: str | None = None) -> "Trace":
        """Return the run with one stream alone; this trace itself if it has no other.

        Raises:
            TraceError: the stream is missing.
        """
        stream = self.stream(stream)
        if (stream,) in (self.attention_streams, self.streams):
            return self
        queries, keys = {stream: self.query_tokens(stream)}, {stream: self.key_tokens(stream)}
        alike = stream == self.text_stream or stream in self.mixers
        origin = self.provenance if alike else replace(self.provenance, segments=(), answer=None)
        if stream in self.mixers:
            mixers, rerun = {stream: self.mixers[stream]}, Rerun(lambda: self.fidelity, check=behind(self).check)
            return attach(Trace({}, queries, keys, by_row(self), origin, seen=self.seen, mixers=mixers), rerun)
        rerun = Rerun(
            lambda: self.fidelity,
            lambda: {stream: self.whole_layers[stream]},
            self.relevance if self.differentiable else None,
            behind(self).zero,
            check=behind(self).check,
        )
        alone, kept = {stream: self.layers[stream]}, {stream: self.kept[stream]}
        return attach(
            Trace(alone, queries, keys, by_row(self), origin, kept=kept, seen=self.seen, mixers=self.mixers),
            rerun,
        )

    def derived(
        self,
        *,
        layers: LayersByStream | None = None,
        queries: Mapping[str, Tokens] | None = None,
        keys: Mapping[str, Tokens] | None = None,
        output: Output | None = None,
        provenance: Provenance | None = None,
        mixers: MixersByStream | None = None,
        before: str = "",
    ) -> "Trace":
        """Return a trace with some parts replaced; the rest stays as it is, fidelity included.

        Args:
            layers: with all known tensors around their calls, of some or all streams. As many as before keep their
                numbers; if no layer is missing, there may be more or fewer.
            queries: the tokens of the rows, for the same streams.
            keys: the tokens of the columns, for the same streams.
            output: (position, width).
            provenance: the new origin, with the change.
            mixers: layers without a softmax for new tokens; without them, a trace of new tokens has none.
            before: the change, in words that end a sentence; the fidelity says that it is the one before the change.

        Returns:
            A trace without gradients, unless only its provenance changed.

        Raises:
            TraceError: layers and tokens don't fit together.
        """
        same = (layers, queries, keys, output, mixers) == (None,) * 5
        rerun = Rerun(
            lambda: self.fidelity.before(before),
            (lambda: self.whole_layers) if layers is None else None,
            self.relevance if same and self.differentiable else None,
            behind(self).zero if same else None,
            check=behind(self).check,
        )
        streams = self.attention_streams if layers is None else tuple(layers)
        rows, columns = queries or self.queries, keys or self.keys
        origin = self.provenance if provenance is None else provenance
        if origin.segments and origin.segments == self.segments:
            read = rows.get(self.text_stream) if self.text_stream in self.queries else next(iter(rows.values()))
            if read is None or len(read) != len(self.query_tokens(self.text_stream)):
                origin = replace(origin, segments=(), answer=None)  # they are of other tokens
        lengths = {*map(len, (*rows.values(), *columns.values()))}
        made = Trace(
            self.layers if layers is None else layers,
            {name: rows[name] for name in streams or rows},
            {name: columns[name] for name in streams or columns},
            by_row(self) if output is None else output,
            origin,
            kept={name: self.kept[name].relabelled(labels_of((layers or self.layers)[name])) for name in streams},
            seen=self.seen,
            mixers=mixers or (self.mixers if lengths == {len(self.query_tokens(self.streams[0]))} else None),
        )
        return attach(made, rerun)

    def detached(self) -> "Trace":
        """Return the trace with fidelity and output computed, and without the model and input behind it.

        It has the tensors around the attention calls only if they were made before.
        """
        layers: LayersByStream = vars(self).get("whole_layers", self.layers)
        found = (layers, self.queries, self.keys, self.output, self.provenance, self.fidelity, self.kept, self.seen)
        return Trace(*found, self.mixers)


# What a trace of some heads and rows answers; all else needs the others, too.
_OF_PART = frozenset(
    "provenance fidelity output output_at output_shape nbytes resting_bytes kept streams attention_streams layer_count "
    "layer_numbers query_tokens key_tokens queries keys seen mixers".split()
)


class TracePart(Trace):
    """A trace of some heads, or of a text's last rows: `model.trace(…, heads=, queries=)`.

    It has its heads and rows under the model's own numbers, and refuses all else by a `TraceError`.
    """

    @classmethod
    def of(cls, whole: Trace, cells: KeptCells) -> "TracePart":
        """Wrap a trace whose calls have these cells alone."""
        made = cls.__new__(cls)
        vars(made).update(_whole=whole, part=cells)
        return attach(made, behind(whole))

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute that needs no other heads or rows."""
        if name.startswith("_") or name in vars(TracePart) or name == "part":
            return object.__getattribute__(self, name)
        if name in _OF_PART:
            return getattr(object.__getattribute__(self, "_whole"), name)
        cells = object.__getattribute__(self, "part")
        raise TraceError(
            f"this trace keeps only {cells}, and {name} needs all heads and rows; trace the text without heads= and "
            "queries=, or read weights(layer, head) or table()"
        )

    def __repr__(self) -> str:
        """Show the trace and its kept part."""
        return f"TracePart({self._whole!r}, only {self.part})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def head_attention(self, layer: int, head: int, stream: str | None = None) -> Attention:
        """Return one kept head's call: its rows are the kept ones, its keys all of the text's."""
        return (call := self._whole.attention(layer, stream)).head(self._index_of(head, call.shape[0]))

    def weights(self, layer: int, head: int, stream: str | None = None) -> Tensor:
        """Return one kept head's weights, (kept row, key)."""
        return self.head_attention(layer, head, stream).weights

    def table(
        self,
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Return one row per kept weight, as `Trace.table` does, with the model's heads and the text's positions."""
        heads, start = self._numbers(stream)
        index = None if head is None else self._index_of(head, len(heads))
        found = weights_table(self._whole, layer, index, stream, layers, progress)
        return found.assign(head=[heads[one] for one in found["head"]], query=found["query"] + start)

    def to_parquet(
        self,
        path: str | PathLike[str],
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the rows of `table` to a Parquet file, as `Trace.to_parquet` does."""
        heads, start = self._numbers(stream)
        index = None if head is None else self._index_of(head, len(heads))
        write_weights(self._whole, path, (layer, index, stream, layers), progress, heads, start)

    def save(
        self,
        path: str | PathLike[str],
        *,
        layers: Sequence[int] | None = None,
        what: Literal["all", "terms", "weights"] = "all",
        dtype: Literal["float16", "float32"] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the kept part to a file, as `Trace.save` does; `Trace.load` reads it as a part."""
        write_trace(self._whole, path, layers=layers, what=what, dtype=dtype, progress=progress, cells=self.part)

    def _numbers(self, stream: str | None) -> tuple[Sequence[int], int]:
        """Return the model's numbers of the kept heads, and the first kept row's position."""
        count = self._whole.head_count(self._whole.layer_numbers(stream)[0], stream)
        start = len(self._whole.key_tokens(stream)) - len(self._whole.query_tokens(stream))
        return self.part.heads or range(count), start

    def _index_of(self, head: int, count: int) -> int:
        heads: Sequence[int] = self.part.heads or range(count)
        if not is_whole(head) or head not in heads:
            raise TraceError(f"no head {head!r}; this trace keeps only {self.part}")
        return list(heads).index(head)
