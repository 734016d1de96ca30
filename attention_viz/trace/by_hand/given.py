"""Make traces from queries, keys and values, or from weights alone."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, fusible
from attention_viz.operation.kernel import BOUNDS, kernel_weights
from attention_viz.operation.reach import is_causal
from attention_viz.operation.shapes import shared_heads, side_by_side
from attention_viz.operation.terms import map_terms
from attention_viz.trace.layers import STREAMS, Layer
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import TraceData, attach

__all__ = [
    "Labels",
    "compared",
    "compared_with_weights",
    "differing",
    "origin_of",
    "sampled",
    "tokens_of",
    "trace_of_calls",
]

Labels = Sequence[str] | Tokens | None

_Made = TypeVar("_Made", bound=TraceData)

# So many weights of a head are compared; of more, this many rows.
_WHOLE, _ROWS = 2**20, 128


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


def trace_of_calls(
    kind: type[_Made],
    calls: Sequence[Attention],
    named: tuple[Labels, Labels, str | None],
    name: str,
    measure: Callable[[], Fidelity],
) -> _Made:
    """Make a trace of calls, one per layer.

    Args:
        named: the labels of queries and keys, and the stream.
    """
    labels, key_labels, stream = named
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
    trace = kind(
        {stream: tuple(Layer(call, str(place)) for place, call in enumerate(calls))},
        {stream: asking},
        {stream: asked},
        side_by_side(calls[-1].output),
        origin_of(name, calls[0]),
    )
    return attach(trace, Rerun(measure))


def _of_all_heads(call: Attention) -> Tensor | None:
    """Return a mask that all heads share as a matrix, else None."""
    allowed = call.allowed
    return None if allowed is None or allowed[..., 0, 0].numel() > 1 else allowed


def compared(calls: Sequence[Attention]) -> Fidelity:
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


def compared_with_weights(calls: Sequence[Attention], rows: Sequence[Tensor]) -> Fidelity:
    """Compare the drawn weights with the original ones; the output is unknown."""
    far = max(differing(call.weights, one) for call, one in zip(calls, rows, strict=True))
    return Fidelity(None, far, BOUNDS[torch.float32], "the weights that were given, which no model ran for")
