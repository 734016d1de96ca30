"""A run's attention layers by stream, with the tensors around them, checked."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, fields

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import FLOATING, broadcasts
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.kind import STREAM_KINDS, STREAMS
from attention_viz.trace.memory import LateOutput
from attention_viz.trace.picking import Picking, check_picking


@dataclass(frozen=True, eq=False, repr=False)
class Layer(ShortRepr):
    """One attention layer of one stream.

    Attributes:
        attention: the recorded call, head first: query is (head, query, d_k).
        label: the model's own number for the layer, as text.
        embeddings: the layer's input, if known.
        joined: all heads joined and projected by W_O, if known.
        unrotated_query: the query before rotary position embeddings (RoPE), if the model uses them.
        unrotated_key: the key before rotary position embeddings.
        source: the input of keys and values in cross-attention, the encoder's output. None if they use the embeddings.
        bias_parts: the summands of the call's bias by name, if known: "ALiBi", "relative positions", "content to
            position" (query times distance), "position to content" (key times distance), or "given" for a rest that no
            product made. Blocked cells are 0.
        picking: the keys that the layer's indexer picked, if it has one and left some out.
    """

    attention: Attention
    label: str
    embeddings: Float[Tensor, "query d_model"] | None = None
    joined: Float[Tensor, "query d_model"] | None = None
    unrotated_query: Float[Tensor, "head query d_k"] | None = None
    unrotated_key: Float[Tensor, "key_head key d_k"] | None = None
    source: Float[Tensor, "key d_source"] | None = None
    bias_parts: Mapping[str, Float[Tensor, "*head _query _key"]] = field(default_factory=dict[str, Tensor])
    picking: Picking | None = None

    @property
    def around(self) -> Mapping[str, Tensor]:
        """The known tensors around the call, by name."""
        found = {name: getattr(self, name) for name in AROUND}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    @property
    def tensors(self) -> Iterator[Tensor]:
        """All tensors of the layer: its call's terms and those around it."""
        terms = (getattr(self.attention, entry.name) for entry in fields(self.attention))
        yield from (term for term in terms if isinstance(term, Tensor))
        yield from self.around.values()
        yield from self.bias_parts.values()
        yield from (() if self.picking is None else (self.picking.scores, self.picking.picked))


@dataclass(frozen=True, eq=False, repr=False)
class MixerLayer(ShortRepr):
    """One layer that mixes tokens without a softmax: the recorded call, head first, and the model's number for it.

    Attributes:
        convolved: over how many tokens, itself included, a convolution mixed each value before; 0 if none did, or if
            this isn't known.
    """

    mixer: TokenMixer
    label: str
    convolved: int = 0

    @property
    def tensors(self) -> Iterator[Tensor]:
        """The call's tensors."""
        terms = (getattr(self.mixer, entry.name) for entry in fields(self.mixer))
        yield from (term for term in terms if isinstance(term, Tensor))


def labels_of(layers: Iterable[Layer | MixerLayer]) -> list[str]:
    """Return each layer's label."""
    return [layer.label for layer in layers]


def sizes_in_words(
    layers: Mapping[str, tuple[Layer, ...]],
    kept: Mapping[str, KeptLayers],
    mixers: Mapping[str, tuple[MixerLayer, ...]],
) -> dict[str, str]:
    """Return each stream's count of layers, with the kind of mixers, and of heads or channels."""
    found = {name: f"{kept[name].counted} × {one[0].attention.shape[0]} heads" for name, one in layers.items()}
    for name, one in mixers.items():
        kinds = " and ".join(dict.fromkeys(layer.mixer.kind for layer in one))
        heads = "/".join(dict.fromkeys(str(layer.mixer.shape[0]) for layer in one))
        counted = KeptLayers.by_labels(labels_of(one)).counted
        found[name] = f"{counted} of {kinds} × {heads} {one[0].mixer.per}s"
    return found


# The names of the tensors around a call.
AROUND = tuple(
    entry.name for entry in fields(Layer) if entry.name not in ("attention", "label", "bias_parts", "picking")
)


def check_output(output: Tensor | LateOutput) -> None:
    """Refuse an output that isn't a floating-point matrix."""
    if len(output.shape) != 2 or output.dtype not in FLOATING:
        got = f"{tuple(output.shape)} of {output.dtype}"
        raise TraceError(f"the output must be a floating-point matrix, (position, width); got {got}")


def check_layers(
    streams: Mapping[str, tuple[Layer, ...]],
    queries: Mapping[str, Sized],
    keys: Mapping[str, Sized],
    kept: Mapping[str, KeptLayers],
) -> None:
    """Refuse a layer whose tensors don't fit its tokens."""
    for stream, layers in streams.items():
        for number, layer in zip(kept[stream].numbers, layers, strict=True):
            _check_layer(f"{stream} layer {number}", layer, len(queries[stream]), len(keys[stream]))


def _check_layer(name: str, layer: Layer, queries: int, keys: int) -> None:
    shape = layer.attention.shape
    if len(shape) != 3 or shape[1:] != (queries, keys):
        raise TraceError(f"{name} must have weights for {queries} × {keys} tokens; got (head, query, key) = {shape}")
    for what, rows, axis, count in (
        ("embeddings", layer.embeddings, "query", queries),
        ("joined", layer.joined, "query", queries),
        ("a source", layer.source, "key", keys),
    ):
        if rows is not None and (rows.ndim != 2 or len(rows) != count or rows.dtype not in FLOATING):
            got = f"{tuple(rows.shape)} of {rows.dtype}"
            raise TraceError(f"{name} needs {what} of ({axis}, d_model) for {count} tokens; got {got}")
    if layer.picking is not None:
        check_picking(name, layer.picking, shape)
    for part, numbers in layer.bias_parts.items():
        if numbers.ndim < 2 or not broadcasts(tuple(numbers.shape), shape) or numbers.dtype not in FLOATING:
            got = f"{tuple(numbers.shape)} of {numbers.dtype}"
            raise TraceError(f"{name} needs a bias part {part!r} that broadcasts to {shape}; got {got}")
    for what, before, after in (
        ("query", layer.unrotated_query, layer.attention.query),
        ("key", layer.unrotated_key, layer.attention.key),
    ):
        if before is not None and (before.shape != after.shape or before.dtype not in FLOATING):
            got = f"{tuple(before.shape)} of {before.dtype}"
            raise TraceError(f"{name} needs an unrotated {what} of the {what}'s shape {tuple(after.shape)}; got {got}")


def check_mixers(mixers: Mapping[str, tuple[MixerLayer, ...]], tokens: int) -> None:
    """Refuse a mixer whose matrices don't fit the tokens."""
    for stream, layers in mixers.items():
        for layer in layers:
            shape = layer.mixer.shape
            if len(shape) != 3 or shape[1:] != (tokens, tokens):
                name = f"{stream} layer {layer.label}"
                raise TraceError(f"{name} has weights (head, query, key) = {shape}; there are {tokens} tokens")


def check_streams(
    layers: Mapping[str, Sized], queries: Mapping[str, Sized], keys: Mapping[str, Sized], mixers: Mapping[str, Sized]
) -> None:
    """Refuse streams with unknown names, no layer, or missing tokens; mixers alone have those of the first one."""
    if not (layers or mixers) or not set(layers) <= set(STREAMS):
        known, got = ", ".join(STREAM_KINDS), ", ".join(layers) or "none"
        raise TraceError(f"a trace needs streams named {known}; got {got}")
    if not (set(layers) or set(list(mixers)[:1])) == set(queries) == set(keys):
        raise TraceError("each stream needs layers, query tokens and key tokens; one of them is missing")
    empty = [stream for stream, found in (*layers.items(), *mixers.items()) if not found]
    if empty:
        raise TraceError(f"each stream needs at least one layer; the {empty[0]} has none")
