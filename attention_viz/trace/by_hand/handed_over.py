"""Read and check queries, keys, values, masks and weights layer by layer."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.masks import causal
from attention_viz.operation.shapes import FLOATING
from attention_viz.operation.terms import map_terms
from attention_viz.trace.by_hand.layout import Named, check_weights_layout
from attention_viz.trace.from_weights import attention_of

__all__ = ["Layers", "calls_of_qkv", "calls_of_weights"]

# A tensor of one layer, or one a layer.
Layers = Tensor | Sequence[Tensor]

# How far a row of weights may be from 1, in float32 and in half precision.
_SUM, _HALF_SUM = 1e-3, 1e-2


def calls_of_qkv(
    query: Layers,
    key: Layers,
    value: Layers,
    allowed: Any,
    bias: Any,
    sinks: Any,
    batch: int | None,
    **numbers: float | None,
) -> list[Attention]:
    """Make each layer's call of queries, keys and values, with copies of its numbers.

    Args:
        numbers: `scale` and `softcap`, of all layers.
    """
    calls: list[Attention] = []
    for place in range(_count_layers(query, key, value)):
        made = attend(
            _layer_tensor(query, place, batch),
            _layer_tensor(key, place, batch),
            _layer_tensor(value, place, batch),
            _layer_mask(allowed, place, batch),
            bias=_layer_mask(bias, place, batch),
            sinks=_of_layer(sinks, place),
            **numbers,
        )
        # Copies, so that nobody overwrites them.
        calls.append(map_terms(made, lambda _, one: one.detach().clone() if isinstance(one, Tensor) else one))
    return calls


def calls_of_weights(
    weights: Any, allowed: Any, named: Named, batch: int | None
) -> tuple[list[Attention], list[Tensor]]:
    """Make each layer's call of weights alone; return the weights, too, as they came."""
    several = list(cast("Sequence[Any]", weights)) if isinstance(weights, list | tuple) else [weights]
    if not several:
        raise ShapeError("no weights were given; needed: (head, query, key), or a list of these, one a layer")
    tensors = [_floating(one, "weights") for one in several]
    for one in tensors:
        check_weights_layout(one, named)
    _, key_labels, stream = named
    rows = [_head_first(one, batch, "weights") for one in tensors]
    if allowed is None and stream in (None, "decoder") and key_labels is None:
        allowed = _causal_by_weights(rows)
    masks = [_layer_mask(allowed, place, batch) for place in range(len(rows))]
    pairs = enumerate(zip(rows, masks, strict=True))
    return [_call_of_weights(one, mask, f"layer {place}") for place, (one, mask) in pairs], rows


def _count_layers(*parts: Layers) -> int:
    """Count the layers of queries, keys and values."""
    counts = {len(part) for part in parts if isinstance(part, list | tuple)}
    lists = sum(isinstance(part, list | tuple) for part in parts)
    if lists not in (0, len(parts)) or len(counts) > 1 or 0 in counts:
        raise ShapeError("query, key and value are a tensor each, or a list each with one tensor a layer")
    return counts.pop() if counts else 1


def _of_layer(part: Any, place: int) -> Any:
    """Return a list's entry for the layer, else the shared value."""
    if not isinstance(part, list | tuple):
        return part
    entries = cast("Sequence[Any]", part)
    if place >= len(entries):
        raise ShapeError(f"a list of {len(entries)} came for more layers; needed: one entry a layer, or one for all")
    return entries[place]


def _layer_tensor(part: Any, place: int, batch: int | None) -> Tensor:
    """Return a layer's query, key or value, (head, position, width)."""
    return _head_first(_floating(_of_layer(part, place), "query, key and value"), batch, "queries, keys and values")


def _layer_mask(part: Any, place: int, batch: int | None) -> Tensor | None:
    """Drop the batch axis of a mask or bias."""
    one = _of_layer(part, place)
    if one is None or not isinstance(one, Tensor) or one.ndim != 4:
        return one
    return one[0] if len(one) == 1 else _row(one, batch, "masks")


def _floating(part: Any, what: str) -> Tensor:
    """Convert to a floating-point tensor."""
    try:
        tensor = (part if isinstance(part, Tensor) else torch.as_tensor(part)).detach()
    except (TypeError, ValueError, RuntimeError):
        raise ShapeError(f"{what} have to be tensors; got {type(part).__name__}") from None
    if tensor.dtype not in FLOATING:
        raise ShapeError(f"{what} have to be floating numbers; got {tensor.dtype}")
    return tensor


def _head_first(tensor: Tensor, batch: int | None, what: str) -> Tensor:
    """Drop the batch axis and ensure a head axis."""
    if tensor.ndim == 2:
        return tensor[None]
    if tensor.ndim == 4:
        return _row(tensor, batch, what)
    if tensor.ndim != 3:
        raise ShapeError(
            f"{what} have the shape {tuple(tensor.shape)}; needed: (head, …, …), (…, …) or (batch, head, …, …)"
        )
    return tensor


def _row(tensor: Tensor, batch: int | None, what: str) -> Tensor:
    rows = len(tensor)
    if batch is None and rows != 1:
        raise ShapeError(
            f"{what} have {rows} rows along their first axis; name one with batch=0 to {rows - 1}, or, where these are "
            "layers, hand over a list"
        )
    if batch is not None and not 0 <= batch < rows:
        raise ShapeError(f"row {batch} of a batch of {rows} was asked for; there are 0 to {rows - 1}")
    return tensor[batch or 0]


def _causal_by_weights(layers: Sequence[Tensor]) -> Tensor | None:
    """Return the causal mask if no weight is on a later token, which softmax alone never gives."""
    queries, keys = layers[0].shape[-2:]
    if queries != keys or queries < 2 or any(one.shape[-2:] != (queries, keys) for one in layers):
        return None
    closed = all(not bool(one.triu(1).any()) for one in layers)
    return causal(queries).to(layers[0].device) if closed else None


def _call_of_weights(weights: Tensor, allowed: Tensor | None, name: str) -> Attention:
    """Make a call of weights, each row divided by its sum.

    Args:
        allowed: True where a query may look.
    """
    half = weights.dtype in (torch.float16, torch.bfloat16)
    wide = weights.double()
    if not bool(wide.isfinite().all()) or bool((wide < 0).any()):
        raise TraceError(f"{name} has weights below 0 or that are not numbers; a weight is a share, from 0 to 1")
    sums = wide.sum(dim=-1)
    wrong = ((sums - 1).abs() > (_HALF_SUM if half else _SUM)) & (sums != 0)
    if bool(wrong.any()):
        head, row = wrong.nonzero()[0].tolist()
        for axis in (-2, -3):
            if bool(((wide.sum(dim=axis) - 1).abs() <= (_HALF_SUM if half else _SUM)).all()):
                raise TraceError(
                    f"{name} sums to 1 along axis {axis}, so the keys are there; pass weights.movedim({axis}, -1), as "
                    "(head, query, key)"
                )
        raise TraceError(
            f"row {row} of head {head} of {name} sums to {float(sums[head, row]):.4g}; each row of weights sums to 1, "
            "or to 0 where nothing is allowed. Dropout changes sums: take the weights in evaluation mode. Of attention "
            "with sinks, whose rows sum to less, give query, key and value to Trace.from_qkv(…, sinks=…)"
        )
    if allowed is not None and bool((wide * ~allowed.to(wide.device)).any()):
        raise TraceError(f"{name} has weights above 0 where `allowed` says that nobody may look")
    shares = wide / torch.where(sums > 0, sums, 1)[..., None]
    return attention_of(shares, allowed)
