"""A trace's fields, by stream and layer number, and the run behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeVar, overload

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import is_whole
from attention_viz.operation.short_repr import short_repr
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.kept import (
    KeptLayers,
    LayerIndex,
    LayerNumber,
    check_kept,
    no_such_layer,
    numbers_of,
)
from attention_viz.trace.layers import (
    Layer,
    MixerLayer,
    check_layers,
    check_mixers,
    check_output,
    check_streams,
    labels_of,
    sizes_in_words,
)
from attention_viz.trace.memory import LateOutput, bytes_of
from attention_viz.trace.once import once
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Along, Relevance, Rerun
from attention_viz.trace.seen import NOTHING, Seen
from attention_viz.trace.tokens import Tokens

Output = Float[Tensor, "position width"] | LateOutput
LayersByStream = Mapping[str, tuple[Layer, ...]]
MixersByStream = Mapping[str, tuple[MixerLayer, ...]]
_Traced = TypeVar("_Traced", bound="TraceData")

# Where a trace keeps an output that isn't made yet, and the run behind it, out of sight of its fields and its equals.
_LATE, _RUN = "_late output", "_run behind"


def _whole_output(trace: "TraceData") -> Float[Tensor, "position width"]:
    """Return all rows of the output; a long text's are made on first use."""
    return vars(trace)[_LATE].whole()


# What makes a trace's output where it isn't there yet.
_OUTPUT: Any = once(_whole_output)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TraceData:
    """The data of a trace; `Trace` adds derivations."""

    layers: LayersByStream
    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]
    output: Float[Tensor, "position width"] = _OUTPUT
    provenance: Provenance
    kept: Mapping[str, KeptLayers]
    seen: Seen
    mixers: MixersByStream

    def __init__(
        self,
        layers: LayersByStream,
        queries: Mapping[str, Tokens],
        keys: Mapping[str, Tokens],
        output: Float[Tensor, "position width"] | LateOutput,
        provenance: Provenance,
        fidelity: Fidelity | None = None,
        kept: Mapping[str, KeptLayers] | None = None,
        seen: Seen = NOTHING,
        mixers: MixersByStream | None = None,
    ) -> None:
        """Build an immutable trace.

        Without `fidelity`, it can't be measured. Without `kept`, these are all layers, numbered by their labels.
        """
        kept = (
            {stream: KeptLayers.by_labels(labels_of(found)) for stream, found in layers.items()}
            if kept is None
            else kept
        )
        parts = {"layers": layers, "queries": queries, "keys": keys, "kept": kept, "mixers": mixers or {}}
        closed = {name: MappingProxyType(dict(part)) for name, part in parts.items()}
        # `fidelity` and `output` are worked out once where they aren't here.
        known: dict[str, object] = {} if fidelity is None else {"fidelity": fidelity}
        known[_LATE if isinstance(output, LateOutput) else "output"] = output
        vars(self).update(closed, provenance=provenance, seen=seen, **known)
        check_streams(self.layers, self.queries, self.keys, self.mixers)
        check_output(output)
        check_kept(self.kept, self.layers)
        check_layers(self.layers, self.queries, self.keys, self.kept)
        check_mixers(self.mixers, len(next(iter(self.queries.values()))))

    def __repr__(self) -> str:
        """Show model, text, layer and head counts."""
        sizes = ", ".join(
            f"{stream}: {size} × {len(self.query_tokens(stream))} × {len(self.key_tokens(stream))} tokens"
            for stream, size in sizes_in_words(self.layers, self.kept, self.mixers).items()
        )
        origin = self.provenance
        more = "".join(f", {words}" for words in (origin.generated_in_words, origin.stored_in_words) if words)
        read = next(iter(origin.media.values()), "no text" if origin.text is None else short_repr(origin.text))
        return f"Trace({origin.model!r}, {read}, {sizes}{more})"

    @property
    def nbytes(self) -> int:
        """The bytes of its tensors in memory, with those of `whole_layers` once they are made; see `bytes_of`."""
        return bytes_of(self._tensors, resting=False)

    @property
    def resting_bytes(self) -> int:
        """The bytes of its tensors in a mapped file, most of a long trace."""
        return bytes_of(self._tensors, resting=True)

    @property
    def _tensors(self) -> list[Tensor]:
        loaded = vars(self).get("whole_layers", self.layers)
        output = by_row(self)
        computed = [one for layers in loaded.values() for layer in layers for one in layer.tensors]
        outputs = [output] if isinstance(output, Tensor) else output.held
        mixed = [one for layers in self.mixers.values() for layer in layers for one in layer.tensors]
        return [*outputs, *self.seen.tensors.values(), *computed, *mixed]

    @property
    def output_shape(self) -> tuple[int, int]:
        """The output's row count and width."""
        rows, width = by_row(self).shape
        return rows, width

    def output_at(self, position: int) -> Float[Tensor, " width"]:
        """Return the output's row at a position, counted from the end if negative, without computing all rows.

        Raises:
            IndexError: the row is missing.
            TraceError: the row isn't made yet, and the model has changed since it ran.
        """
        return by_row(self)[position]

    @once
    def fidelity(self) -> Fidelity:
        """The distance of the model's output with our attention from its output without; one pass, made once.

        Raises:
            TraceError: the trace was built without one, or the model has changed since.
        """
        return behind(self).measure()

    @once
    def whole_layers(self) -> LayersByStream:
        """The layers with the known tensors around their attention calls, made once.

        Raises:
            TraceError: the model has changed since the trace was made.
        """
        if (complete := behind(self).complete) is None:
            return self.layers
        whole = MappingProxyType(dict(complete()))
        check_layers(whole, self.queries, self.keys, self.kept)
        return whole

    @property
    def differentiable(self) -> bool:
        """Return whether a model behind the trace gives gradients."""
        return behind(self).differentiate is not None and bool(self.layers)

    def relevance(self, of: tuple[int, int] | Along | None = None) -> Relevance:
        """Return how far each weight raised one number of the output, by another run of the same input.

        Args:
            of: the number's (position, token id), or a direction of the output; by default the model's prediction, as
                in `gradient`.

        Raises:
            TraceError: the trace has no model behind it, or it has changed since.
            UnsupportedModel: the model passes no gradient.
            ShapeError: the position or token is missing.
        """
        self.check_attends()
        return behind(self).relevance(of)

    def value_zeroing(self, stream: str | None = None) -> tuple[Float[Tensor, "query key"], ...]:
        """Return how far each layer's output turns at each query if one key's value is zero in all heads.

        Each whole layer runs again for each key. Source: Mohebbi et al. 2023, "Quantifying Context Mixing in
        Transformers", section 3.

        Args:
            stream: None for the only one.

        Returns:
            1 - cos of the outputs with and without, (query, key) per kept layer; 0 if the output doesn't turn.

        Raises:
            TraceError: the trace has no pretrained model behind it, it has changed since, or the stream is missing.
            UnsupportedModel: the model's layers can't run by themselves.
        """
        return behind(self).without_values(self.attention_stream(stream))

    @property
    def streams(self) -> tuple[str, ...]:
        """The recorded kinds of attention, such as ("decoder",) or ("encoder", "decoder", "cross"), then the mixers.

        "mixer" has the layers that mix tokens without a softmax; if a layer has several, "mixer 2" has its second. The
        first stream has the tokens of the text.
        """
        return (*self.layers, *self.mixers)

    @property
    def attention_streams(self) -> tuple[str, ...]:
        """The streams of softmax attention alone."""
        return tuple(self.layers)

    def stream(self, name: str | None = None) -> str:
        """Check a stream's name; None stands for the only one of softmax attention, or else of mixers.

        Raises:
            TraceError: the stream is missing, or there are several and none was named.
        """
        if name is None and len(named := self.attention_streams or self.streams) == 1:
            return named[0]
        if name is None or name not in self.streams:
            asked = "no stream was named" if name is None else f"unknown stream {name!r}"
            raise TraceError(f"{asked}; this trace has {', '.join(self.streams)}")
        return name

    def attention_stream(self, name: str | None = None) -> str:
        """Check the name of a stream of softmax attention; None stands for the only one.

        Raises:
            TraceError: as `stream` does, or the stream has no softmax attention.
        """
        if (stream := self.stream(name)) not in self.layers:
            self.check_attends()
            raise TraceError(f"the {stream} has no softmax attention; choose {', '.join(self.layers)}")
        return stream

    def check_attends(self) -> None:
        """Refuse a trace without softmax attention, by a `TraceError`."""
        if not self.layers:
            raise TraceError(
                "the model has no softmax attention; its layers mix tokens by signed weights, "
                f"trace.weights(layer, head, {self.streams[0]!r})"
            )

    def layer_count(self, stream: str | None = None) -> int:
        """Count the kept layers of a stream; all of the model's by default."""
        return len(self.layer_numbers(stream))

    def layer_numbers(self, stream: str | None = None) -> tuple[int, ...]:
        """Return the model's own numbers of the kept attention layers, rising.

        They are 0, 1, 2 …, unless you kept only some layers, or the model has layers without softmax attention.
        """
        if (stream := self.stream(stream)) in self.mixers:
            return numbers_of(labels_of(self.mixers[stream]))
        return self.kept[stream].numbers

    def check_every_layer(self, what: str, stream: str | None = None) -> None:
        """Refuse a computation that needs every layer if one is missing.

        Args:
            what: the computation's name, for the message.
            stream: None for every one.

        Raises:
            TraceError: a layer is missing.
        """
        for name in self.attention_streams if stream is None else (self.attention_stream(stream),):
            if not self.kept[name].whole:
                raise TraceError(
                    f"{what} needs every layer of the {name}, but this trace keeps {self.kept[name]}; trace the "
                    "text without layers=…"
                )

    def head_count(self, layer: int, stream: str | None = None) -> int:
        """Count a layer's heads."""
        return self.attention(layer, stream).shape[0]

    @overload
    def attention(self, layer: int, stream: Literal["mixer"]) -> TokenMixer: ...  # pyright: ignore[reportOverlappingOverload] -- a name of its own

    @overload
    def attention(self, layer: int, stream: str | None = None) -> Attention: ...

    def attention(self, layer: int, stream: str | None = None) -> Attention | TokenMixer:
        """Return one layer's call, head first: query is (head, query, d_k).

        A layer without a softmax, of the stream "mixer", has a `TokenMixer`, whose weights are signed. Without
        `stream`, the only stream that has the layer counts.

        Raises:
            TraceError: the layer or stream is missing, several streams have it, or the layer isn't kept.
        """
        if (mixer := self._mixer(layer, stream)) is not None:
            return mixer.mixer
        stream, index = self._index(layer, stream)
        return self.layers[stream][index].attention

    def label(self, layer: int, stream: str | None = None) -> str:
        """Return the model's own number for a layer, as text.

        Raises:
            TraceError: the layer or stream is missing, or the layer isn't kept.
        """
        if (mixer := self._mixer(layer, stream)) is not None:
            return mixer.label
        stream, index = self._index(layer, stream)
        return self.layers[stream][index].label

    def weights(self, layer: int, head: int, stream: str | None = None) -> Float[Tensor, "query key"]:
        """Return one head's weights, signed in a mixer; raises the errors of `attention` and its `head`."""
        return self.attention(layer, stream).head(head).weights

    def query_tokens(self, stream: str | None = None) -> Tokens:
        """Return the tokens of the rows."""
        return self.queries[self._tokens_of(stream)]

    def key_tokens(self, stream: str | None = None) -> Tokens:
        """Return the tokens of the columns."""
        return self.keys[self._tokens_of(stream)]

    def _mixer(self, layer: int, stream: str | None) -> MixerLayer | None:
        """Return a layer without a softmax, if that is meant."""
        having = {name: self.layer_numbers(name) for name in self.mixers}
        if stream is None:
            mixing = [name for name, numbers in having.items() if layer in numbers]
            if len(self.layers) > 1 or not (mixing or not self.layers):
                return None
            mixing = mixing or [self.stream()]
            attending = [name for name in self.layers if layer in self.kept[name].numbers]
            if len(found := [*attending, *mixing]) > 1:
                raise TraceError(f"layer {layer} is in {' and '.join(found)}; choose one with stream=")
            stream = mixing[0]
        if stream not in having:
            return None
        if not is_whole(layer) or layer not in having[stream]:
            raise TraceError(f"layer {layer!r} has no {stream}; choose {', '.join(map(str, having[stream]))}")
        return self.mixers[stream][having[stream].index(LayerNumber(layer))]

    def _tokens_of(self, stream: str | None) -> str:
        """Return the stream whose tokens are those of a stream; all mixers read the same text."""
        stream = self.stream(stream)
        return next(iter(self.queries)) if stream in self.mixers else stream

    def layer(self, layer: int, stream: str | None = None) -> Layer:
        """Return one layer with the tensors around its attention call.

        Raises:
            TraceError: the layer or stream is missing, or the layer isn't kept.
        """
        stream, index = self._index(layer, stream)
        return self.whole_layers[stream][index]

    def _index(self, layer: int, stream: str | None) -> tuple[str, LayerIndex]:
        stream = self.attention_stream(stream)
        kept = self.kept[stream]
        if not is_whole(layer) or layer not in kept.numbers:
            if kept.whole or layer in kept.without:
                mixing = [f"; see stream={name!r}" for name in self.mixers if layer in self.layer_numbers(name)]
                raise TraceError(no_such_layer(layer, kept, f"the {stream}") + "".join(mixing[:1]))
            raise TraceError(f"no layer {layer!r}; of the {stream} this trace keeps {kept}")
        return stream, kept.index(LayerNumber(layer))


def attach(trace: _Traced, rerun: Rerun) -> _Traced:
    """Attach a run to a new trace before it is shared; return the trace."""
    vars(trace)[_RUN] = rerun
    return trace


def behind(trace: TraceData) -> Rerun:
    """Return a trace's run; an empty one if it was made by hand."""
    return vars(trace).get(_RUN, _NOTHING_BEHIND)


def by_row(trace: TraceData) -> Tensor | LateOutput:
    """Return a trace's output without computing all of its rows."""
    # A part of a trace has the whole one's output.
    found = vars(vars(trace).get("_whole", trace))
    return found["output"] if "output" in found else found[_LATE]


def _refuse() -> Fidelity:
    raise TraceError(
        "fidelity needs a model behind the trace, and this one was put together without; pass Trace(…, fidelity=…)"
    )


_NOTHING_BEHIND = Rerun(_refuse)
