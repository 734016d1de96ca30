"""The immutable record of one pass through a model: every picture, table and export is a function of it."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from types import MappingProxyType

# Only tables need it, and it is loaded with the first trace all the same: Plotly looks whether pandas is there, and
# fails on one that another thread of a server is just loading.
import pandas
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import FLOATING
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.tokens import Tokens

STREAMS = ("encoder", "decoder", "cross")

__all__ = ["STREAMS", "Fidelity", "Layer", "Provenance", "Relevance", "Trace"]


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention layer of one stream.

    Attributes:
        attention: the call that ran, head first: query is (head, query, d_k).
        label: the model's own number for the layer, as text.
        embeddings: what enters the layer, where known.
        joined: the heads joined and projected, after W_O, where known.
        unrotated_query: the query before positions were turned into it (RoPE), where the model does that.
        unrotated_key: the key likewise.
        source: what keys and values are made of, where those are another text's: in cross-attention, what the encoder
            hands over. None where they are made of the embeddings, too.
    """

    attention: Attention
    label: str
    embeddings: Float[Tensor, "query d_model"] | None = None
    joined: Float[Tensor, "query d_model"] | None = None
    unrotated_query: Float[Tensor, "head query d_k"] | None = None
    unrotated_key: Float[Tensor, "key_head key d_k"] | None = None
    source: Float[Tensor, "key d_source"] | None = None


@dataclass(frozen=True, eq=False)
class Relevance:
    """How far each weight of a run raised one number of its output.

    Attributes:
        layers: by stream, of each layer the part of weight times gradient that is above 0, (head, query, key).
        of: the number that was raised, in words.
    """

    layers: Mapping[str, tuple[Float[Tensor, "head query key"], ...]]
    of: str


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What one pass through a model computed, layer by layer.

    Keeps query, key, value and the other terms of each attention call; weights are computed when somebody asks.

    Attributes:
        layers: by stream ("encoder", "decoder" or "cross"), its attention layers in the order they ran.
        queries: by stream, the tokens down the rows.
        keys: by stream, the tokens across the columns.
        output: logits (position, vocabulary) where the model has a head, else the last hidden state
            (position, d_model).
        provenance: where it comes from.
        measure: makes the comparison behind `fidelity` when it is first asked for.
        complete: finds what stands around the attention calls when it is first asked for; None where `layers` have
            all that is known. Keeping it from the start would slow every run down for the few that look at it.
        differentiate: runs the same once more for the gradients of one number of the output, that of a (position, token
            id) or, given None, of what the model says; None where no model stands behind the trace any more.
    """

    layers: Mapping[str, tuple[Layer, ...]]
    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]
    output: Float[Tensor, "position width"]
    provenance: Provenance
    measure: Callable[[], Fidelity]
    complete: Callable[[], Mapping[str, tuple[Layer, ...]]] | None = None
    differentiate: Callable[[tuple[int, int] | None], Relevance] | None = None

    def __post_init__(self) -> None:
        """Close it to changes, and refuse tokens that don't stand along the matrices they are meant for."""
        for name in ("layers", "queries", "keys"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        _check_streams(self)
        _check_layers(self, self.layers)

    def __repr__(self) -> str:
        """One line: the model, the text, and how many layers and heads."""
        sizes = ", ".join(
            f"{stream}: {len(layers)} layers × {layers[0].attention.shape[0]} heads × "
            f"{len(self.queries[stream])} × {len(self.keys[stream])} tokens"
            for stream, layers in self.layers.items()
        )
        return f"Trace({self.provenance.model!r}, {self.provenance.text!r}, {sizes})"

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention recorded: ("encoder",), ("decoder",) or ("encoder", "decoder", "cross")."""
        return tuple(self.layers)

    @functools.cached_property
    def fidelity(self) -> Fidelity:
        """How far the model's output with our attention is from its output without; one plain pass, made once."""
        return self.measure()

    @functools.cached_property
    def whole_layers(self) -> Mapping[str, tuple[Layer, ...]]:
        """The layers with what stands around their attention calls, as far as it is known; made once."""
        if self.complete is None:
            return self.layers
        whole = MappingProxyType(dict(self.complete()))
        _check_layers(self, whole)
        return whole

    def query_tokens(self, stream: str | None = None) -> Tokens:
        """The tokens down the rows."""
        return self.queries[self.stream(stream)]

    def key_tokens(self, stream: str | None = None) -> Tokens:
        """The tokens across the columns."""
        return self.keys[self.stream(stream)]

    def layer_count(self, stream: str | None = None) -> int:
        """How many attention layers there are."""
        return len(self.layers[self.stream(stream)])

    def head_count(self, layer: int, stream: str | None = None) -> int:
        """How many heads a layer has."""
        return self.attention(layer, stream).shape[0]

    def layer(self, layer: int, stream: str | None = None) -> Layer:
        """Everything known of one layer, what stands around its attention call included.

        Raises:
            TraceError: there is no such layer or stream.
        """
        stream = self.stream(stream)
        self._check_place(layer, stream)
        return self.whole_layers[stream][layer]

    def attention(self, layer: int, stream: str | None = None) -> Attention:
        """The attention call of one layer, head first: query is (head, query, d_k).

        Raises:
            TraceError: there is no such layer or stream.
        """
        stream = self.stream(stream)
        self._check_place(layer, stream)
        return self.layers[stream][layer].attention

    def label(self, layer: int, stream: str | None = None) -> str:
        """The model's own number for a layer, as text.

        Raises:
            TraceError: there is no such layer or stream.
        """
        stream = self.stream(stream)
        self._check_place(layer, stream)
        return self.layers[stream][layer].label

    def _check_place(self, layer: int, stream: str) -> None:
        count = len(self.layers[stream])
        if not 0 <= layer < count:
            raise TraceError(f"layer {layer} was asked for; the {stream} has layers 0 to {count - 1}")

    def weights(self, layer: int, head: int, stream: str | None = None) -> Float[Tensor, "query key"]:
        """How much each query takes from each key, in one head.

        Raises:
            TraceError: there is no such layer or stream.
            ShapeError: there is no such head.
        """
        return self.attention(layer, stream).head(head).weights

    def stream(self, name: str | None = None) -> str:
        """The stream of that name; None stands for the only one there is.

        Raises:
            TraceError: no such stream, or several to choose from and none chosen.
        """
        if name is None and len(self.layers) == 1:
            return self.streams[0]
        if name is None or name not in self.layers:
            asked = "no stream was named" if name is None else f"the stream {name!r} was asked for"
            raise TraceError(f"{asked}; this trace has {', '.join(self.streams)}")
        return name

    def table(self, layer: int | None = None, head: int | None = None, stream: str | None = None) -> pandas.DataFrame:
        """Every weight as a row: stream, layer, head, query, query_token, key, key_token, weight.

        Args:
            layer: only this layer; all by default.
            head: only this head; all by default.
            stream: only this stream; all by default.

        Raises:
            TraceError: there is no such layer or stream.
            ShapeError: there is no such head.
        """
        from attention_viz.trace.table import weights_table

        return weights_table(self, layer, head, stream)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace to one file at exactly that path: safetensors, with JSON in its header."""
        from attention_viz.trace.storage import write_trace

        write_trace(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> "Trace":
        """Read a trace back from a file that `save` wrote.

        Raises:
            TraceError: the file is missing, broken, or not a trace of ours.
        """
        from attention_viz.trace.storage import read_trace

        return read_trace(path)


def _check_streams(trace: Trace) -> None:
    if not trace.layers or not set(trace.layers) <= set(STREAMS):
        raise TraceError(f"a trace has streams named {', '.join(STREAMS)}; got {', '.join(trace.layers) or 'none'}")
    if not set(trace.layers) == set(trace.queries) == set(trace.keys):
        raise TraceError(
            "each stream needs its layers, its query tokens and its key tokens, and one of them is missing"
        )
    empty = [stream for stream, layers in trace.layers.items() if not layers]
    if empty:
        raise TraceError(f"each stream needs at least one layer; the {empty[0]} has none")
    if trace.output.ndim != 2 or trace.output.dtype not in FLOATING:
        came = f"{tuple(trace.output.shape)} of {trace.output.dtype}"
        raise TraceError(f"the output has to be (position, width) of floating numbers; got {came}")


def _check_layers(trace: Trace, streams: Mapping[str, tuple[Layer, ...]]) -> None:
    for stream, layers in streams.items():
        for number, layer in enumerate(layers):
            _check_layer(f"{stream} layer {number}", layer, len(trace.queries[stream]), len(trace.keys[stream]))


def _check_layer(name: str, layer: Layer, queries: int, keys: int) -> None:
    shape = layer.attention.shape
    if len(shape) != 3 or shape[1:] != (queries, keys):
        raise TraceError(f"{name} has weights (head, query, key) = {shape}, and the tokens are {queries} × {keys}")
    for what, rows, axis, count in (
        ("embeddings", layer.embeddings, "query", queries),
        ("joined", layer.joined, "query", queries),
        ("a source", layer.source, "key", keys),
    ):
        if rows is not None and (rows.ndim != 2 or len(rows) != count or rows.dtype not in FLOATING):
            came = f"{tuple(rows.shape)} of {rows.dtype}"
            raise TraceError(f"{name} needs {what} of ({axis}, d_model) for {count} tokens; got {came}")
    for what, before, after in (
        ("query", layer.unrotated_query, layer.attention.query),
        ("key", layer.unrotated_key, layer.attention.key),
    ):
        if before is not None and (before.shape != after.shape or before.dtype not in FLOATING):
            came = f"{tuple(before.shape)} of {before.dtype}"
            raise TraceError(f"{name} needs an unrotated {what} of the {what}'s shape {tuple(after.shape)}; got {came}")
