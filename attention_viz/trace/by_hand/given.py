"""Make traces from queries, keys and values, or from weights alone."""

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, attend, fusible
from attention_viz.operation.kernel import BOUNDS, kernel_weights
from attention_viz.operation.reach import is_causal
from attention_viz.operation.shapes import shared_heads, side_by_side
from attention_viz.operation.terms import map_terms
from attention_viz.trace.by_hand.handed_over import (
    Layers,
    call_of_weights,
    causal_by_weights,
    count_layers,
    floating,
    head_first,
    layer_mask,
    layer_tensor,
    of_layer,
    with_its_own,
)
from attention_viz.trace.by_hand.layout import check_weights_layout, heads_first
from attention_viz.trace.layers import STREAMS, Layer
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Rerun, attach
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["FromTensors", "Labels", "differing", "origin_of", "sampled", "tokens_of"]

Labels = Sequence[str] | Tokens | None

_Made = TypeVar("_Made", bound="FromTensors")

# So many weights of a head are compared; of more, this many rows.
_WHOLE, _ROWS = 2**20, 128


class _Maker(Protocol):
    def __call__(
        self, layers: Any, queries: Any, keys: Any, output: Tensor, provenance: Provenance, fidelity: Any = None
    ) -> Any: ...


class FromTensors:
    """What makes a trace of tensors in hand."""

    @classmethod
    def from_qkv(
        cls: type[_Made],
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
    ) -> _Made:
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
        calls: list[Attention] = []
        for place in range(count_layers(query, key, value)):
            made = attend(
                layer_tensor(query, place, batch),
                layer_tensor(key, place, batch),
                layer_tensor(value, place, batch),
                layer_mask(allowed, place, batch),
                scale=scale,
                bias=layer_mask(bias, place, batch),
                softcap=softcap,
                sinks=of_layer(sinks, place),
            )
            calls.append(with_its_own(made))
        return _made(cls, calls, labels, key_labels, stream, name, lambda: _compared(calls))

    @classmethod
    def from_weights(
        cls: type[_Made],
        weights: Any,
        labels: Labels = None,
        key_labels: Labels = None,
        *,
        allowed: Tensor | Sequence[Tensor | None] | None = None,
        stream: str | None = None,
        batch: int | None = None,
        name: str = "weights of one's own",
    ) -> _Made:
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
        given = list(cast("Sequence[Any]", weights)) if isinstance(weights, list | tuple) else [weights]
        if not given:
            raise ShapeError("no weights were given; needed: (head, query, key), or a list of these, one a layer")
        tensors = [floating(one, "weights") for one in given]
        for one in tensors:
            check_weights_layout(one, (labels, key_labels, stream))
        rows = [head_first(one, batch, "weights") for one in tensors]
        if allowed is None and stream in (None, "decoder") and key_labels is None:
            allowed = causal_by_weights(rows)
        masks = [layer_mask(allowed, place, batch) for place in range(len(rows))]
        calls = [
            call_of_weights(one, mask, f"layer {place}")
            for place, (one, mask) in enumerate(zip(rows, masks, strict=True))
        ]
        return _made(cls, calls, labels, key_labels, stream, name, lambda: _as_given(calls, rows))


def tokens_of(labels: Labels, count: int, which: str) -> Tokens:
    """Return the tokens along an axis; without labels, positions."""
    if labels is None:
        labels = [str(place) for place in range(count)]
    tokens = labels if isinstance(labels, Tokens) else Tokens.of_labels(labels)
    if len(tokens) != count:
        raise TraceError(f"{len(tokens)} labels were given for {count} {which}; needed: one for each")
    return tokens


def origin_of(name: str, call: Attention) -> Provenance:
    """Describe the origin of numbers that no model here computed."""
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    versions = {"attention_viz": own, "torch": str(torch.__version__), "device": call.query.device.type}
    return Provenance(model=name, dtype=str(call.query.dtype).removeprefix("torch."), versions=versions)


def sampled(shape: Sequence[int]) -> Tensor | None:
    """Choose evenly spread rows of (…, query, key) to compare; None for all."""
    queries, keys = shape[-2:]
    return None if queries * keys <= _WHOLE else torch.linspace(0, queries - 1, min(_ROWS, queries)).long()


def differing(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference relative to the second's largest number; infinite for NaN."""
    if ours.shape != theirs.shape:
        return math.inf
    if not theirs.numel():
        return 0.0
    ours, theirs = ours.detach().double(), theirs.detach().double()
    apart, size = float((ours - theirs).abs().max()), float(theirs.abs().max())
    return math.inf if math.isnan(apart) else apart / size if size else math.inf if apart else 0.0


def _made(
    cls: "type[_Made]",
    calls: Sequence[Attention],
    labels: Labels,
    key_labels: Labels,
    stream: str | None,
    name: str,
    measure: Any,
) -> _Made:
    shapes = {call.shape[-2:] for call in calls}
    if len(shapes) > 1:
        phrase = ", ".join(f"{queries} × {keys}" for queries, keys in sorted(shapes))
        raise ShapeError(f"the layers have (query, key) = {phrase}; needed: the same tokens in every layer")
    ((queries, keys),) = shapes
    if stream is not None and stream not in STREAMS:
        raise TraceError(f"the stream {stream!r} was asked for; there are {', '.join(STREAMS)}")
    crossing = key_labels is not None or queries != keys
    if stream is None:
        closed = all(is_causal(_of_all_heads(call), call.shape[-2:]) for call in calls)
        stream = "cross" if crossing else "decoder" if closed else "encoder"
    asking = tokens_of(labels, queries, "queries")
    asked = tokens_of(key_labels, keys, "keys") if crossing else asking
    trace = cast("_Maker", cls)(
        {stream: tuple(Layer(call, str(place)) for place, call in enumerate(calls))},
        {stream: asking},
        {stream: asked},
        side_by_side(calls[-1].output),
        origin_of(name, calls[0]),
    )
    return cast("_Made", attach(cast("Trace", trace), Rerun(measure)))


def _of_all_heads(call: Attention) -> Tensor | None:
    """Return a mask that all heads share as a matrix, else None."""
    allowed = call.allowed
    return None if allowed is None or allowed[..., 0, 0].numel() > 1 else allowed


def _compared(calls: Sequence[Attention]) -> Fidelity:
    """Compare with torch's attention, or the float64 formula if torch lacks a term."""
    started, output, weight, rows = time.perf_counter(), 0.0, 0.0, None
    known = all(map(fusible, calls))
    for call in calls:
        some = sampled(call.shape)
        rows = rows if some is None else len(some)
        part = call if some is None else call.rows(some.tolist())
        exact = map_terms(part, lambda _, value: value.double() if _is_floating(value) else value)
        theirs = torch.stack(list(_kernel_heads(part))) if known else exact.weights
        weight = max(weight, differing(part.weights, theirs))
        output = max(output, differing(part.output, exact.output))
    reference = "torch's own attention on the same numbers" if known else "the same formula in float64"
    bound = max(BOUNDS[call.query.dtype] for call in calls)
    return Fidelity(output, weight, bound, reference, time.perf_counter() - started, rows)


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _kernel_heads(call: Attention) -> Any:
    keys = shared_heads(call.key, call.query)
    for head in range(call.shape[0]):
        one = call.head(head)
        mask = one.allowed if one.bias is None else one.bias
        if one.bias is not None and one.allowed is not None:
            mask = one.bias.masked_fill(~one.allowed, -math.inf)
        mask = None if mask is None else mask.expand(one.shape)
        yield kernel_weights(one.query, keys[head if len(keys) > 1 else 0], mask, one.scale)


def _as_given(calls: Sequence[Attention], rows: Sequence[Tensor]) -> Fidelity:
    """Compare the drawn weights with the original ones; the output is unknown."""
    far = max(differing(call.weights, one) for call, one in zip(calls, rows, strict=True))
    return Fidelity(None, far, BOUNDS[torch.float32], "the weights that were given, which no model ran for")
