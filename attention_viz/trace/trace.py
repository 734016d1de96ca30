"""The immutable record of one pass through a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jaxtyping import Float
from torch import Tensor

from attention_viz.operation.short_repr import short_repr
from attention_viz.trace.by_hand.given import FromTensors
from attention_viz.trace.filed import Filed
from attention_viz.trace.in_html import trace_in_html
from attention_viz.trace.late_output import LATE, LateOutput, by_row, whole_output
from attention_viz.trace.layers import STREAMS, Layer, check_layers, check_output, check_streams, labels_of
from attention_viz.trace.numbered.by_number import ByNumber
from attention_viz.trace.numbered.kept import KeptLayers, check_kept
from attention_viz.trace.once import once
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Along, Relevance, Rerun, attach, behind
from attention_viz.trace.resting import bytes_of
from attention_viz.trace.shown.seen import NOTHING, Seen
from attention_viz.trace.tokens import Tokens

__all__ = ["STREAMS", "Fidelity", "Layer", "Provenance", "Relevance", "Trace"]

_Layers = Mapping[str, tuple[Layer, ...]]
# What makes a trace's output where it isn't there yet.
_OUTPUT: Any = once(whole_output)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trace(FromTensors, Filed, ByNumber):
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

    layers: _Layers
    queries: Mapping[str, Tokens]
    keys: Mapping[str, Tokens]
    output: Float[Tensor, "position width"] = _OUTPUT
    provenance: Provenance
    kept: Mapping[str, KeptLayers]
    seen: Seen

    def __init__(
        self,
        layers: _Layers,
        queries: Mapping[str, Tokens],
        keys: Mapping[str, Tokens],
        output: Float[Tensor, "position width"] | LateOutput,
        provenance: Provenance,
        fidelity: Fidelity | None = None,
        kept: Mapping[str, KeptLayers] | None = None,
        seen: Seen = NOTHING,
    ) -> None:
        """Build an immutable trace.

        Without `fidelity`, it can't be measured. Without `kept`, the layers are all, numbered by their labels.
        """
        kept = (
            {stream: KeptLayers.by_labels(labels_of(found)) for stream, found in layers.items()}
            if kept is None
            else kept
        )
        parts = {"layers": layers, "queries": queries, "keys": keys, "kept": kept}
        closed = {name: MappingProxyType(dict(part)) for name, part in parts.items()}
        # `fidelity` and `output` are worked out once where they aren't here.
        known: dict[str, object] = {} if fidelity is None else {"fidelity": fidelity}
        known[LATE if isinstance(output, LateOutput) else "output"] = output
        vars(self).update(closed, provenance=provenance, seen=seen, **known)
        check_streams(self.layers, self.queries, self.keys)
        check_output(output)
        check_kept(self.kept, self.layers)
        check_layers(self.layers, self.queries, self.keys, self.kept)

    def __repr__(self) -> str:
        """Show model, text, layer and head counts."""
        sizes = ", ".join(
            f"{stream}: {self.kept[stream].counted} × {layers[0].attention.shape[0]} heads × "
            f"{len(self.queries[stream])} × {len(self.keys[stream])} tokens"
            for stream, layers in self.layers.items()
        )
        stored = f", {words}" if (words := self.provenance.stored_in_words) else ""
        text = self.provenance.text
        media = self.provenance.media.values()
        read = next(iter(media), "no text" if text is None else short_repr(text))
        return f"Trace({self.provenance.model!r}, {read}, {sizes}{stored})"

    def _repr_html_(self) -> str:
        return trace_in_html(self)

    @property
    def nbytes(self) -> int:
        """How many bytes its tensors hold in memory, those of `whole_layers` once it was asked for; see `bytes_of`."""
        return bytes_of(self._tensors, resting=False)

    @property
    def resting_bytes(self) -> int:
        """How many bytes of it rest in a mapped file, as most of a long trace does."""
        return bytes_of(self._tensors, resting=True)

    @property
    def _tensors(self) -> list[Tensor]:
        loaded = vars(self).get("whole_layers", self.layers)
        output = by_row(self)
        computed = [one for layers in loaded.values() for layer in layers for one in layer.tensors]
        outputs = [output] if isinstance(output, Tensor) else output.held
        return [*outputs, *self.seen.tensors.values(), *computed]

    @property
    def output_shape(self) -> tuple[int, int]:
        """How many rows the output has, and how wide they are."""
        rows, width = by_row(self).shape
        return rows, width

    def output_at(self, position: int) -> Float[Tensor, " width"]:
        """The output's row at a position, counted from the end where negative; of a long text no others are made.

        Raises:
            IndexError: there is no such row.
            TraceError: it isn't made yet, and the model has changed since it ran.
        """
        return by_row(self)[position]

    @once
    def fidelity(self) -> Fidelity:
        """How far the model's output with our attention is from its output without; one plain pass, made once.

        Raises:
            TraceError: the trace was put together without one, or the model has changed since.
        """
        return behind(self).measure()

    @once
    def whole_layers(self) -> _Layers:
        """The layers with what stands around their attention calls, as far as it is known; made once.

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
        """Whether a model stands behind the trace that can be asked for gradients."""
        return behind(self).differentiate is not None

    def relevance(self, of: tuple[int, int] | Along | None = None) -> Relevance:
        """How far each weight raised one number of the output, by a run of the same once more.

        Args:
            of: the number's (position, token id), or a direction of the output; by default what the model says, as
                `gradient` tells.

        Raises:
            TraceError: no model stands behind the trace, or it has changed since.
            UnsupportedModel: no gradient goes through the model.
            ShapeError: there is no such position or token.
        """
        return behind(self).relevance(of)

    def value_zeroing(self, stream: str | None = None) -> tuple[Float[Tensor, "query key"], ...]:
        """How far each layer's output turns for each query where the value of a key is zero in all of its heads.

        Each layer runs once more, whole, for each key. Source: Mohebbi et al. 2023, "Quantifying Context Mixing in
        Transformers", section 3.

        Args:
            stream: whose layers; None for the only one there is.

        Returns:
            1 - cos of the outputs with and without, (query, key) of each layer that is kept; 0 where it doesn't turn.

        Raises:
            TraceError: no pretrained model stands behind the trace, it has changed since, or there is no such stream.
            UnsupportedModel: the model's layers can't be run by themselves.
        """
        return behind(self).without_values(self.stream(stream))

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
        layers: _Layers | None = None,
        queries: Mapping[str, Tokens] | None = None,
        keys: Mapping[str, Tokens] | None = None,
        output: Float[Tensor, "position width"] | LateOutput | None = None,
        provenance: Provenance | None = None,
        before: str = "",
    ) -> "Trace":
        """A trace made of this one: what isn't given stays as it is, its fidelity too.

        Args:
            layers: other layers, with all that is known to stand around them, of fewer streams, or of all. As many
                take the numbers of those before; where no layer is missing there may be more or fewer.
            queries: other tokens down the rows, of the same streams.
            keys: other tokens across the columns, of the same streams.
            output: another output.
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
        layers: _Layers = vars(self).get("whole_layers", self.layers)
        return Trace(layers, self.queries, self.keys, self.output, self.provenance, self.fidelity, self.kept, self.seen)

    def query_tokens(self, stream: str | None = None) -> Tokens:
        """The tokens down the rows."""
        return self.queries[self.stream(stream)]

    def key_tokens(self, stream: str | None = None) -> Tokens:
        """The tokens across the columns."""
        return self.keys[self.stream(stream)]

    def layer(self, layer: int, stream: str | None = None) -> Layer:
        """Everything known of one layer, what stands around its attention call included.

        Raises:
            TraceError: there is no such layer or stream, or the layer isn't kept.
        """
        stream, index = self._index(layer, stream)
        return self.whole_layers[stream][index]
