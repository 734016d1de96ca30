"""Make traces of queries, keys and values, or of weights alone."""

import importlib.metadata
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, attend, fusible
from attention_viz.operation.kernel import BOUNDS, kernel_weights
from attention_viz.operation.layouts import Named, check_weights_layout
from attention_viz.operation.masks import causal
from attention_viz.operation.reach import is_causal
from attention_viz.operation.rope import Positions, Rope, rotated
from attention_viz.operation.shapes import FLOATING, is_whole, shared_heads, side_by_side
from attention_viz.operation.terms import map_terms
from attention_viz.trace.given.from_weights import attention_of
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.kind import STREAM_KINDS, STREAMS
from attention_viz.trace.layers import Layer
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import TraceData, attach

# A tensor of one layer, or one a layer.
Layers = Tensor | Sequence[Tensor]

# How far a row of weights may be from 1, in float32 and in half precision.
_SUM, _HALF_SUM = 1e-3, 1e-2
Labels = Sequence[str] | Tokens | None

Made = TypeVar("Made", bound=TraceData)

# Weights held at a time for an output.
WEIGHTS_AT_ONCE = 2**24
# So many weights of a head are compared; of more, this many rows.
_WHOLE, _ROWS = 2**20, 128


def calls_of_qkv(
    query: Layers,
    key: Layers,
    value: Layers,
    allowed: Any,
    bias: Any,
    sinks: Any,
    batch: int | None,
    rope: Positions | Sequence[Positions] = None,
    positions: Any = None,
    **numbers: float | None,
) -> list[Attention]:
    """Make each layer's call from copies of its tensors; `scale` and `softcap` apply to all layers."""
    if positions is not None and rope is None:
        raise ShapeError("positions need a rule to turn by; pass rope=av.Rope(…), or leave positions out")
    calls: list[Attention] = []
    count = _count_layers(query, key, value)
    _check_lists(count, allowed=allowed, bias=bias, sinks=sinks, rope=rope if isinstance(rope, list) else None)
    for place in range(count):
        asking, asked = _layer_tensor(query, place, batch), _layer_tensor(key, place, batch)
        if (turning := _layer_rope(rope, place)) is not None:
            asking, asked = rotated(asking, asked, turning, positions)
        made = attend(
            asking,
            asked,
            _layer_tensor(value, place, batch),
            _layer_mask(allowed, place, batch),
            bias=_layer_mask(bias, place, batch),
            sinks=_of_layer(sinks, place),
            **numbers,
        )
        if wrong := [one for one in ("query", "key", "value") if not bool(getattr(made, one).isfinite().all())]:
            raise TraceError(f"layer {place} has NaN or infinity in its {wrong[0]}; pass finite numbers")
        # Copies, so that nobody overwrites them.
        calls.append(map_terms(made, lambda _, one: one.detach().clone() if isinstance(one, Tensor) else one))
    return calls


def calls_of_weights(
    weights: Any, allowed: Any, named: Named, batch: int | None
) -> tuple[list[Attention], list[Tensor]]:
    """Make each layer's call from weights alone; also return the original weights."""
    several = list(cast("Sequence[Any]", weights)) if isinstance(weights, list | tuple) else [weights]
    if not several:
        raise ShapeError("weights are empty; pass (head, query, key), or a list with one per layer")
    tensors = [floating(one, "weights") for one in several]
    for one in tensors:
        check_weights_layout(one, named)
    _, key_labels, stream = named
    rows = [_head_first(one, batch, "weights") for one in tensors]
    if allowed is None and stream in (None, "decoder") and key_labels is None:
        allowed = causal_by_weights(rows)
    _check_lists(len(rows), allowed=allowed)
    masks = [_layer_mask(allowed, place, batch) for place in range(len(rows))]
    pairs = enumerate(zip(rows, masks, strict=True))
    return [call_of_weights(one, mask, f"layer {place}") for place, (one, mask) in pairs], rows


def _count_layers(*parts: Layers) -> int:
    """Count the layers of queries, keys and values."""
    counts = {len(part) for part in parts if isinstance(part, list | tuple)}
    lists = sum(isinstance(part, list | tuple) for part in parts)
    if lists not in (0, len(parts)) or len(counts) > 1 or 0 in counts:
        raise ShapeError("query, key and value must each be a tensor, or each a list with one tensor per layer")
    return counts.pop() if counts else 1


def _check_lists(count: int, **parts: Any) -> None:
    """Refuse a list of more or fewer entries than layers."""
    for name, part in parts.items():
        if isinstance(part, list | tuple) and len(cast("Sequence[Any]", part)) != count:
            raise ShapeError(
                f"{name} has {len(cast('Sequence[Any]', part))} entries for {count} layers; pass one entry per layer, "
                "or one for all"
            )


def _of_layer(part: Any, place: int) -> Any:
    """Return a list's entry for the layer, else the shared value."""
    if not isinstance(part, list | tuple):
        return part
    return cast("Sequence[Any]", part)[place]


def _layer_rope(rope: Positions | Sequence[Positions], place: int) -> Positions:
    """Return a layer's positions; a list has one entry per layer, a tuple is cosines and sines."""
    return cast("Positions", _of_layer(rope, place)) if isinstance(rope, list) else cast("Positions", rope)


def _layer_tensor(part: Any, place: int, batch: int | None) -> Tensor:
    """Return a layer's query, key or value, (head, position, width)."""
    return _head_first(floating(_of_layer(part, place), "query, key and value"), batch, "queries, keys and values")


def _layer_mask(part: Any, place: int, batch: int | None) -> Tensor | None:
    """Drop the batch axis of a mask or bias."""
    one = _of_layer(part, place)
    if one is None or not isinstance(one, Tensor) or one.ndim != 4:
        return one
    return one[0] if len(one) == 1 else row_of_batch(one, batch, "masks")


def floating(part: Any, what: str) -> Tensor:
    """Convert to a floating-point tensor."""
    try:
        tensor = (part if isinstance(part, Tensor) else torch.as_tensor(part)).detach()
    except (TypeError, ValueError, RuntimeError):
        raise ShapeError(f"{what} must be tensors; got {type(part).__name__}") from None
    if tensor.dtype not in FLOATING:
        raise ShapeError(f"{what} must be floating-point numbers; got {tensor.dtype}")
    return tensor


def _head_first(tensor: Tensor, batch: int | None, what: str) -> Tensor:
    """Drop the batch axis and ensure a head axis."""
    if tensor.ndim == 2:
        return tensor[None]
    if tensor.ndim == 4:
        return row_of_batch(tensor, batch, what)
    if tensor.ndim != 3:
        raise ShapeError(
            f"{what} must have the shape (head, …, …), (…, …) or (batch, head, …, …); got {tuple(tensor.shape)}"
        )
    return tensor


def row_of_batch(tensor: Tensor, batch: int | None, what: str) -> Tensor:
    """Return a batch's row; refuse several without a choice."""
    rows = len(tensor)
    if batch is None and rows != 1:
        raise ShapeError(
            f"{what} have {rows} rows along their first axis; choose one with batch=0 to {rows - 1}, or pass layers "
            "as a list"
        )
    if batch is not None and not (is_whole(batch) and 0 <= batch < rows):
        raise ShapeError(f"batch must be 0 to {rows - 1} for {rows} rows; got {batch!r:.40}")
    return tensor[batch or 0]


def causal_by_weights(layers: Sequence[Tensor]) -> Tensor | None:
    """Return the causal mask if no weight is on a later token, which softmax alone never gives."""
    queries, keys = layers[0].shape[-2:]
    if queries != keys or queries < 2 or any(one.shape[-2:] != (queries, keys) for one in layers):
        return None
    closed = all(not bool(one.triu(1).any()) for one in layers)
    return causal(queries).to(layers[0].device) if closed else None


def call_of_weights(weights: Tensor, allowed: Tensor | None, name: str) -> Attention:
    """Make a call from weights after dividing each row by its sum."""
    half = weights.dtype in (torch.float16, torch.bfloat16)
    wide = weights.double()
    if not bool(wide.isfinite().all()) or bool((wide < 0).any()):
        raise TraceError(f"{name} has weights that are negative or not finite; each must be a share, from 0 to 1")
    sums = wide.sum(dim=-1)
    wrong = ((sums - 1).abs() > (_HALF_SUM if half else _SUM)) & (sums != 0)
    if bool(wrong.any()):
        head, row = wrong.nonzero()[0].tolist()
        for axis in (-2, -3):
            if bool(((wide.sum(dim=axis) - 1).abs() <= (_HALF_SUM if half else _SUM)).all()):
                raise TraceError(
                    f"{name} sums to 1 along axis {axis}, so its keys are there; pass weights.movedim({axis}, -1), "
                    "as (head, query, key)"
                )
        raise TraceError(
            f"row {row} of head {head} of {name} sums to {float(sums[head, row]):.4g}, not 1 (or 0 if fully "
            "blocked). Turn dropout off; for attention sinks, use Trace.from_qkv(…, sinks=…)"
        )
    if allowed is not None and bool((wide * ~allowed.to(wide.device)).any()):
        raise TraceError(f"{name} has weights above 0 on keys that `allowed` blocks")
    shares = wide / torch.where(sums > 0, sums, 1)[..., None]
    return attention_of(shares, allowed)


def tokens_of(labels: Labels, count: int, which: str) -> Tokens:
    """Return the tokens along an axis; positions without labels."""
    if labels is None:
        labels = [str(place) for place in range(count)]
    tokens = labels if isinstance(labels, Tokens) else Tokens.of_labels(labels)
    if len(tokens) != count:
        raise TraceError(f"{which} need {count} labels, one each; got {len(tokens)}")
    return tokens


def noted(rope: Positions | Sequence[Positions]) -> tuple[str, ...]:
    """Return a note on positions that were applied here, since nothing compares them with the run's own."""
    if rope is None:
        return ()
    rules = rope if isinstance(rope, list) else [rope]
    kinds = dict.fromkeys(
        repr(one) if isinstance(one, Rope) else "given cosines and sines" for one in rules if one is not None
    )
    return (f"Queries and keys were rotated to their positions afterwards, by {' and '.join(kinds)}.",) if kinds else ()


def origin_of(name: str, call: Attention, notes: tuple[str, ...] = ()) -> Provenance:
    """Describe the origin of numbers that no model here computed."""
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    versions = {"attention_viz": own, "torch": str(torch.__version__), "device": call.query.device.type}
    dtype = str(call.query.dtype).removeprefix("torch.")
    return Provenance(model=name, dtype=dtype, versions=versions, notes=notes)


def version_of(thing: Any) -> dict[str, str]:
    """Return the version of the package that defines an object's class, if it is installed."""
    package = type(thing).__module__.partition(".")[0]
    try:
        return {package: importlib.metadata.version(package)}
    except importlib.metadata.PackageNotFoundError:
        return {}


def sampled(shape: Sequence[int]) -> Tensor | None:
    """Choose evenly spaced query rows to compare; None for all."""
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
    kind: type[Made],
    calls: Sequence[Attention],
    named: tuple[Labels, Labels, str | None],
    name: str,
    measure: Callable[[], Fidelity],
    notes: tuple[str, ...] = (),
) -> Made:
    """Make a trace of one call per layer, with its queries' labels, keys' labels and stream."""
    labels, key_labels, stream = named
    shapes = {call.shape[-2:] for call in calls}
    if len(shapes) > 1:
        phrase = ", ".join(f"{queries} × {keys}" for queries, keys in sorted(shapes))
        raise ShapeError(f"all layers need the same tokens; got (query, key) = {phrase}")
    ((queries, keys),) = shapes
    if stream is not None and stream not in STREAMS:
        raise TraceError(f"unknown stream {stream!r}; choose {', '.join(STREAM_KINDS)}")
    crossing = key_labels is not None or queries != keys
    if stream is None:
        closed = all(is_causal(_of_all_heads(call), call.shape[-2:]) for call in calls)
        stream = "cross" if crossing else "decoder" if closed else "encoder"
    asking = tokens_of(labels, queries, "queries")
    asked = tokens_of(key_labels, keys, "keys") if crossing else asking
    stack = Stack(tuple(calls), asking, asked)
    return trace_of_stacks(kind, {stream: stack}, output_of(calls[-1]), origin_of(name, calls[0], notes), measure)


@dataclass(frozen=True)
class Stack:
    """The calls of one stream's layers, its tokens, and the model's numbers for its layers; 0, 1, 2 … by default."""

    calls: tuple[Attention, ...]
    queries: Tokens
    keys: Tokens
    numbered: KeptLayers | None = None

    def __post_init__(self) -> None:
        """Refuse a call without heads or tokens."""
        if empty := [call.shape for call in self.calls if 0 in call.shape]:
            raise ShapeError(f"a trace needs heads and tokens; got (head, query, key) = {tuple(empty[0])}")

    @property
    def kept(self) -> KeptLayers:
        """The layers' numbers."""
        return KeptLayers.first(len(self.calls)) if self.numbered is None else self.numbered

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The calls under their numbers."""
        return tuple(Layer(call, str(number)) for number, call in zip(self.kept.numbers, self.calls, strict=True))


def trace_of_stacks(
    kind: type[Made],
    stacks: Mapping[str, Stack],
    output: Tensor,
    origin: Provenance,
    measure: Callable[[], Fidelity],
) -> Made:
    """Make a trace of each stream's calls; `output` is (head, query, d_v) or (query, width)."""
    trace = kind(
        {stream: stack.layers for stream, stack in stacks.items()},
        {stream: stack.queries for stream, stack in stacks.items()},
        {stream: stack.keys for stream, stack in stacks.items()},
        side_by_side(output) if output.ndim == 3 else output,
        origin,
        kept={stream: stack.kept for stream, stack in stacks.items()},
    )
    return attach(trace, Rerun(measure))


def output_of(call: Attention) -> Tensor:
    """Return a call's output; some rows at a time if torch would hold all weights for it."""
    heads, queries, keys = call.shape
    if heads * queries * keys <= WEIGHTS_AT_ONCE or (fusible(call) and call.value.shape[-1] == call.key.shape[-1]):
        return call.output
    step = max(1, WEIGHTS_AT_ONCE // (heads * keys))
    starts = range(0, queries, step)
    return torch.cat([call.rows(range(start, min(start + step, queries))).output for start in starts], dim=-2)


def _of_all_heads(call: Attention) -> Tensor | None:
    """Return the mask if all heads share it, else None."""
    allowed = call.allowed
    return None if allowed is None or allowed[..., 0, 0].numel() > 1 else allowed


def compared(calls: Sequence[Attention]) -> Fidelity:
    """Compare with torch's attention, or with the float64 formula if torch lacks a term."""
    started, output, weight, rows = time.perf_counter(), 0.0, 0.0, None
    known = all(map(fusible, calls))
    for call in calls:
        some = sampled(call.shape)
        rows = rows if some is None else len(some)
        part = call if some is None else call.rows(some.tolist())
        exact = map_terms(part, lambda _, value: value.double() if _isfloating(value) else value)
        theirs = torch.stack(list(_kernel_heads(part))) if known else exact.weights
        weight = max(weight, differing(part.weights, theirs))
        output = max(output, differing(part.output, exact.output))
    reference = "torch's own attention on the same numbers" if known else "the same formula in float64"
    bound = max(BOUNDS[call.query.dtype] for call in calls)
    return Fidelity(output, weight, bound, reference, time.perf_counter() - started, rows)


def _isfloating(value: object) -> bool:
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


def compared_with_weights(
    calls: Sequence[Attention], rows: Sequence[Tensor], reference: str = "the given weights, which no model ran for"
) -> Fidelity:
    """Compare the recomputed weights with the original ones; the output is unknown."""
    far = max(differing(call.weights, one) for call, one in zip(calls, rows, strict=True))
    return Fidelity(None, far, BOUNDS[torch.float32], reference)
