"""The immutable record of one pass through a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

# Only tables need it, and it is loaded with the first trace all the same: Plotly looks whether pandas is there, and
# fails on one that another thread of a server is just loading.
import pandas
from torch import Tensor

from attention_viz.trace.ahead import Progress
from attention_viz.trace.export import trace_in_html, weights_table
from attention_viz.trace.files.read import read_trace
from attention_viz.trace.files.write import write_trace
from attention_viz.trace.from_tensors import (
    Labels,
    Layers,
    calls_of_qkv,
    calls_of_weights,
    compared,
    compared_with_weights,
    heads_first,
    trace_of_calls,
)
from attention_viz.trace.layers import STREAMS, Layer, labels_of
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Relevance, Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import LayersByStream, Output, TraceData, attach, behind, by_row

__all__ = ["STREAMS", "Fidelity", "Layer", "Provenance", "Relevance", "Trace"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trace(TraceData):
    """What one pass through a model computed, layer by layer.

    Keeps query, key, value and the other terms of each attention call; weights are computed when somebody asks.

    Attributes:
        layers: by stream ("encoder", "decoder", "cross", "picture" or "sound"), its attention layers in the order they
            ran; those that are kept.
        queries: by stream, the tokens down the rows.
        keys: by stream, the tokens across the columns.
        output: logits (position, vocabulary) where the model has a head, else the last hidden state
            (position, d_model) or an embedding (position, width); `provenance.output` names it. Of a long text logits
            are made when they are asked for, and take gigabytes; `output_at` makes a few of them.
        provenance: where it comes from.
        kept: by stream, which of the model's attention layers are kept. A layer is asked for by the model's own number.
        seen: the picture or the sound that was read, as the model was given it; nothing of a text.
    """

    @classmethod
    def from_qkv(
        cls,
        query: Layers,
        key: Layers,
        value: Layers,
        allowed: Tensor | Sequence[Tensor | None] | None = None,
        *,
        scale: float | None = None,
        bias: Tensor | Sequence[Tensor | None] | None = None,
        softcap: float | None = None,
        sinks: Tensor | Sequence[Tensor | None] | None = None,
        labels: Labels = None,
        key_labels: Labels = None,
        stream: str | None = None,
        batch: int | None = None,
        layout: str | None = None,
        name: str = "queries, keys and values of one's own",
    ) -> "Trace":
        """Make a trace of queries, keys and values from code of your own; our attention computes what follows.

        Its fidelity compares with torch's attention on the same numbers; with a soft cap or sinks, which torch's
        attention lacks, with the same formula in float64.

        Args:
            query: (head, query, d_k), (query, d_k) or (batch, head, query, d_k); or a list with one per layer.
            key: (head, key, d_k) and so on; key and value may have fewer heads than query.
            value: (head, key, d_v) and so on.
            allowed: True where a query may look at a key, as in `attend`; one for all layers, or a list of them.
            scale: multiplies the scores; 1/√d_k by default.
            bias: added to the scaled scores; one for all layers, or a list.
            softcap: bounds the scaled scores to ±softcap, smoothly.
            sinks: one extra logit per head; one tensor for all layers, or a list.
            labels: of the queries, one text for each; their positions by default.
            key_labels: of the keys, where those are other tokens than the queries.
            stream: "encoder", "decoder" or "cross"; by default "cross" where keys are other tokens, "decoder" where no
                query may look ahead, else "encoder".
            batch: which row of a batch, from 0; needed where there are several.
            layout: "bhsd" for (batch, head, position, width), "bshd" for (batch, position, head, width), each with
                or without its batch axis. By default "bhsd"; shapes that fit the other as well are refused.
            name: what pictures and files call it.

        Raises:
            ShapeError: shapes or dtypes that don't fit together; a layout or a batch row that has to be named.
            TraceError: too few or many labels, or no such stream.
        """
        query, key, value = heads_first(query, key, value, layout, (labels, key_labels, stream), allowed)
        calls = calls_of_qkv(query, key, value, allowed, bias, sinks, batch, scale=scale, softcap=softcap)
        return trace_of_calls(cls, calls, (labels, key_labels, stream), name, lambda: compared(calls))

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        labels: Labels = None,
        key_labels: Labels = None,
        *,
        allowed: Tensor | Sequence[Tensor | None] | None = None,
        stream: str | None = None,
        batch: int | None = None,
        name: str = "weights of one's own",
    ) -> "Trace":
        """A trace of attention weights alone, such as another library hands out: pictures, tables and metrics of them.

        What rests on queries, keys and values (steps, norms, single heads' tensors, the long texts' terms) refuses such
        a trace by name. Nobody knows how the weights came to be, so the trace is never "verified".

        Args:
            weights: (head, query, key), of one head (query, key), of a batch (batch, head, query, key); or a list of
                these, one a layer, as transformers' `attentions` are. Tensors or what torch makes tensors of.
            labels: of the queries, one text for each; their positions by default.
            key_labels: of the keys, where those are other tokens than the queries.
            allowed: True where a query may look. By default everywhere, since a weight of 0 needn't be a blocked one;
                but if no weight of any layer is on a later token, nobody may look ahead.
            stream: as in `from_qkv`.
            batch: which row of a batch, from 0; needed where there are several.
            name: what pictures and files call it.

        Raises:
            ShapeError: another shape, or a batch of which no row was named.
            TraceError: numbers below 0 or that are no numbers, rows that sum neither to 1 nor to 0, a weight above 0
                where nobody may look, labels of another number than the tokens, or no such stream.
        """
        calls, rows = calls_of_weights(weights, allowed, (labels, key_labels, stream), batch)
        return trace_of_calls(
            cls, calls, (labels, key_labels, stream), name, lambda: compared_with_weights(calls, rows)
        )

    def table(
        self,
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Every weight as a row.

        Columns stream, layer, head, query, query_token, key, key_token, weight, query_written, key_written.
        A token is the tokenizer's own piece, such as "Ġbank"; written is how people read it, "·bank".

        What takes more than ten seconds says first how many rows it has and how long it may take, and then on standard
        error how far it is.

        Args:
            layer: only this layer; all by default.
            head: only this head; all by default.
            stream: only this stream; all by default.
            layers: only these layers; all by default.
            progress: told after each head which share is done, from 0 to 1, in place of lines on standard error; what
                it raises stops the work.

        Raises:
            TraceError: there is no such layer or stream.
            ShapeError: there is no such head; or layer and layers were both given.
        """
        return weights_table(self, layer, head, stream, layers, progress)

    def save(
        self,
        path: str | PathLike[str],
        *,
        layers: Sequence[int] | None = None,
        what: Literal["all", "terms", "weights"] = "all",
        dtype: Literal["float16", "float32"] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the trace to one file at exactly that path: safetensors, with JSON in its header.

        A file of less says so: the trace that `load` makes of it has in its provenance what was stored and the largest
        absolute difference between a weight of the run and the file's, which is measured over all weights here. What
        takes more than ten seconds says first how large it is and how long it may take, and then on standard error how
        far it is.

        Args:
            path: where to; what is there already stays until the new file is whole.
            layers: only these layers, which keep their numbers; all by default.
            what: "all"; "terms", the calls' queries, keys, values, masks and biases without what stands around them
                (embeddings, heads joined); or "weights" alone: what needs queries and keys refuses such a trace, as it
                does one of `from_weights`. The output is kept in each.
            dtype: numbers of wider kinds are rounded to this one, and widened again when the file is read; None keeps
                all as they are. "float16" halves the file, and a weight is then some 1e-4 to 1e-3 off where scores are
                large.
            progress: told now and then which share is done, from 0 to 1, in place of lines on standard error; what it
                raises stops the work, and nothing is written.

        Raises:
            TraceError: nothing can be written there, a layer isn't kept, or numbers are too large for the dtype; or
                weights alone of a layer with attention sinks.
            ShapeError: another word than these, or no such layers.
        """
        write_trace(self, path, layers=layers, what=what, dtype=dtype, progress=progress)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Read a trace back from a file that `save` wrote.

        Raises:
            TraceError: the file is missing, broken, or not a trace of ours.

        Warns:
            AttentionVizWarning: it holds rounded numbers or weights alone, with the error that this brings.
        """
        return read_trace(cls, path)

    def _repr_html_(self) -> str:
        return trace_in_html(self)

    def only(self, stream: str | None = None) -> "Trace":
        """The run with one stream alone; this trace itself where it has no other.

        Raises:
            TraceError: there is no such stream.
        """
        stream = self.stream(stream)
        if self.streams == (stream,):
            return self
        rerun = Rerun(
            lambda: self.fidelity,
            lambda: {stream: self.whole_layers[stream]},
            self.relevance if self.differentiable else None,
            behind(self).zero,
            check=behind(self).check,
        )
        queries, keys = {stream: self.queries[stream]}, {stream: self.keys[stream]}
        alone, kept = {stream: self.layers[stream]}, {stream: self.kept[stream]}
        return attach(Trace(alone, queries, keys, by_row(self), self.provenance, kept=kept, seen=self.seen), rerun)

    def derived(
        self,
        *,
        layers: LayersByStream | None = None,
        queries: Mapping[str, Tokens] | None = None,
        keys: Mapping[str, Tokens] | None = None,
        output: Output | None = None,
        provenance: Provenance | None = None,
        before: str = "",
    ) -> "Trace":
        """A trace made of this one: what isn't given stays as it is, its fidelity too.

        Args:
            layers: other layers, with all that is known to stand around them, of fewer streams, or of all. As many
                take the numbers of those before; where no layer is missing there may be more or fewer.
            queries: other tokens down the rows, of the same streams.
            keys: other tokens across the columns, of the same streams.
            output: another output, (position, width).
            provenance: where it comes from now; says what was done.
            before: what was done, in words that end a sentence: the fidelity is that of the run before it, and says so.

        Returns:
            A trace that can't be asked for gradients any more, unless only its provenance is another.

        Raises:
            TraceError: layers and tokens that don't fit together.
        """
        same = (layers, queries, keys, output) == (None, None, None, None)
        rerun = Rerun(
            lambda: self.fidelity.before(before),
            (lambda: self.whole_layers) if layers is None else None,
            self.relevance if same and self.differentiable else None,
            behind(self).zero if same else None,
            check=behind(self).check,
        )
        streams = self.streams if layers is None else tuple(layers)
        made = Trace(
            self.layers if layers is None else layers,
            {name: (queries or self.queries)[name] for name in streams},
            {name: (keys or self.keys)[name] for name in streams},
            by_row(self) if output is None else output,
            self.provenance if provenance is None else provenance,
            kept={name: self.kept[name].relabelled(labels_of((layers or self.layers)[name])) for name in streams},
            seen=self.seen,
        )
        return attach(made, rerun)

    def detached(self) -> "Trace":
        """A trace of the run, fidelity and output made now, with no model behind it: it keeps no model or input alive.

        What stands around the attention calls is kept where somebody asked for it before.
        """
        layers: LayersByStream = vars(self).get("whole_layers", self.layers)
        return Trace(layers, self.queries, self.keys, self.output, self.provenance, self.fidelity, self.kept, self.seen)
