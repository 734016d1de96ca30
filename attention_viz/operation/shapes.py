"""How query, key and value stand together: heads apart, shared and joined, and each rule about shapes told by name.

Key and value heads shared by a group of query heads: Ainslie et al. 2023, "GQA", section 2.2.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import ShapeError

if TYPE_CHECKING:
    from attention_viz.operation.attention import Attention

__all__ = [
    "FLOATING",
    "apart",
    "check_call",
    "check_sizes",
    "check_width",
    "for_all_heads",
    "of_head",
    "positions",
    "shape_of_weights",
    "shared_heads",
    "side_by_side",
    "uneven",
    "widened",
    "widths_of_a_head",
]


# What can be computed with; eight bits and fewer are only for storing.
FLOATING = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})

# The kinds and shapes of calls that were found to fit together, as many as are worth remembering.
_REMEMBERED = 4096
_fitting: set[tuple[object, ...]] = set()


def shape_of_weights(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """(…, query, key), the leading axes broadcast after key and value heads were repeated for the query's.

    Raises:
        ShapeError: the leading axes don't broadcast.
    """
    lead = _broadcast(_lead_of_group(key, query), _lead_of_group(value, query))
    lead = None if lead is None else _broadcast(tuple(query.shape[:-2]), lead)
    if lead is None:
        raise ShapeError(f"the leading axes don't broadcast; {_came(query, key, value)}")
    return (*lead, query.shape[-2], key.shape[-2])


def widened(tensor: Tensor) -> Tensor:
    """Half precision as float32; anything wider as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def shared_heads(shared: Tensor, query: Tensor) -> Tensor:
    """Key or value, its heads repeated until there is one for each query head."""
    group = _heads(query) // _heads(shared) if _heads(shared) > 1 else 1
    return shared.repeat_interleave(group, dim=-3) if group > 1 else shared


def of_head(tensor: Tensor, index: int, heads: int) -> Tensor:
    """What one query head sees of a tensor that may have one slice for all heads, one a group, or one each."""
    if tensor.ndim < 3:
        return tensor
    return tensor[..., index // (heads // tensor.shape[-3]), :, :]


def apart(joined: Tensor, heads: int) -> Tensor:
    """(…, n, head · width) as (…, head, n, width)."""
    return joined.unflatten(-1, (heads, -1)).transpose(-3, -2)


def side_by_side(heads: Tensor) -> Tensor:
    """(…, head, n, width) as (…, n, head · width)."""
    return heads.transpose(-3, -2).flatten(-2)


def for_all_heads(allowed: Tensor | None, axes: int) -> Tensor | None:
    """A mask with an axis for the heads put before its last two, where it has a batch axis and none for the heads.

    Args:
        allowed: (query, key), (batch, query, key), or with all axes of the weights.
        axes: how many axes the input has: (batch, n, d_model) has 3.
    """
    return allowed if allowed is None or not 3 <= allowed.ndim <= axes else allowed.unsqueeze(-3)


def widths_of_a_head(d_model: int, heads: int, d_k: int | None, d_v: int | None) -> tuple[int, int]:
    """d_k and d_v, each d_model / heads where it isn't given.

    Raises:
        ShapeError: a size that isn't a whole number above 0, or a d_model that the heads can't share evenly.
    """
    check_sizes(d_model=d_model, heads=heads)
    if (d_k is None or d_v is None) and d_model % heads:
        raise ShapeError(f"{uneven(d_model, heads)}, or d_k and d_v")
    d_k, d_v = (d_model // heads if width is None else width for width in (d_k, d_v))
    check_sizes(d_k=d_k, d_v=d_v)
    return d_k, d_v


def uneven(d_model: int, heads: int) -> str:
    """What is wrong with a width that heads can't share, and what would do."""
    below, above = d_model // heads * heads, (d_model // heads + 1) * heads
    fitting = f"{below} or {above}" if below else str(above)
    return f"d_model {d_model} can't be shared evenly by {heads} heads; give a multiple such as {fitting}"


def check_sizes(**sizes: int) -> None:
    """Refuse sizes of which nothing can be made, by name.

    Raises:
        ShapeError: a size that isn't a whole number above 0.
    """
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ShapeError(f"{name} has to be a whole number, 1 or more; got {size!r}")


def check_width(name: str, tensor: Tensor, width_name: str, width: int) -> None:
    """Refuse an input that a projection can't take.

    Raises:
        ShapeError: it isn't (…, n, width).
    """
    if tensor.ndim < 2 or tensor.shape[-1] != width:
        raise ShapeError(f"{name} has to be (…, n, {width_name}) with {width_name} {width}; got {tuple(tensor.shape)}")


def positions(asked: slice | Sequence[int], count: int, axis: str, device: torch.device) -> Tensor:
    """Rows or columns asked for, as a tensor of positions.

    Raises:
        ShapeError: a position outside what there is.
    """
    chosen = range(count)[asked] if isinstance(asked, slice) else asked
    for position in chosen:
        if not 0 <= position < count:
            raise ShapeError(f"{axis} {position} was asked for; there are {count}, counted from 0")
    return torch.tensor([int(position) for position in chosen], dtype=torch.long, device=device)


def check_call(call: "Attention") -> None:
    """Refuse what can't be computed, each rule by its name, before torch does in its own words.

    Calls of one kind and shape are checked once: a model's pass makes the same call in each of its layers.

    Raises:
        ShapeError: shapes, kinds of number or terms that don't fit together.
    """
    signature = _signature(call)
    if signature in _fitting:
        return
    _check_terms(call)
    _check_kinds(call)
    _check_inputs(call.query, call.key, call.value)
    for name, extra in (("allowed", call.allowed), ("bias", call.bias)):
        if extra is not None and (extra.ndim < 2 or not _broadcasts(extra.shape, call.shape)):
            shape = tuple(extra.shape)
            raise ShapeError(f"{name} has to broadcast to the weights' (…, query, key) = {call.shape}; got {shape}")
    if call.sinks is not None and not _broadcasts(call.sinks.shape, call.shape[:-2]):
        heads, shape = _heads(call.query), tuple(call.sinks.shape)
        raise ShapeError(f"sinks is one number a head, of which there are {heads}; got {shape}")
    if len(_fitting) >= _REMEMBERED:
        _fitting.clear()
    _fitting.add(signature)


def _signature(call: "Attention") -> tuple[object, ...]:
    """All that decides whether a call fits together, without its numbers."""
    terms = (call.query, call.key, call.value, call.allowed, call.bias, call.sinks)
    kinds = [(term.shape, term.dtype) if isinstance(term, Tensor) else type(term) for term in terms]
    return (*kinds, type(call.scale), str(call.scale), str(call.softcap))


def _check_terms(call: "Attention") -> None:
    for name in ("query", "key", "value", "allowed", "bias", "sinks"):
        term: object = getattr(call, name)
        if not isinstance(term, Tensor) and (term is not None or name in ("query", "key", "value")):
            raise ShapeError(f"{name} has to be a tensor; got {type(term).__name__}")
    if not isinstance(call.scale, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"scale has to be a number; got {call.scale!r}")


def _check_kinds(call: "Attention") -> None:
    kinds = {name: getattr(call, name).dtype for name in ("query", "key", "value")}
    if len(set(kinds.values())) > 1 or call.query.dtype not in FLOATING:
        came = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        raise ShapeError(f"query, key and value need one kind of floating number; got {came}")
    for name, extra in (("bias", call.bias), ("sinks", call.sinks)):
        if extra is not None and extra.dtype not in FLOATING:
            raise ShapeError(f"{name} needs floating numbers; got {extra.dtype}")
    if call.allowed is not None and call.allowed.dtype != torch.bool:
        raise ShapeError(f"allowed has to be boolean, True where a query may look; got {call.allowed.dtype}")
    if not math.isfinite(call.scale):
        raise ShapeError(f"scale has to be a finite number; got {call.scale}")
    if call.softcap is not None and not 0 < call.softcap < math.inf:
        raise ShapeError(f"softcap has to be a finite number above 0, or None; got {call.softcap}")


def _check_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
    came = _came(query, key, value)
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"query, key and value need at least the axes (position, width); {came}")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"query and key need the same width d_k to be multiplied; {came}")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"each key needs its own value, so both need the same length; {came}")
    heads = _heads(query)
    for name, count in (("key", _heads(key)), ("value", _heads(value))):
        if heads > 1 and (count == 0 or heads % count):
            raise ShapeError(f"the {count} heads of {name} can't be shared evenly by {heads} query heads; {came}")
    shape_of_weights(query, key, value)


def _came(query: Tensor, key: Tensor, value: Tensor) -> str:
    return f"got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"


def _heads(tensor: Tensor) -> int:
    return tensor.shape[-3] if tensor.ndim >= 3 else 1


def _lead_of_group(shared: Tensor, query: Tensor) -> tuple[int, ...]:
    """The leading axes that key or value has once its heads are repeated for the query's."""
    if _heads(shared) == 1:
        return tuple(shared.shape[:-2])
    return (*shared.shape[:-3], _heads(query) if _heads(query) > 1 else _heads(shared))


def _broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether a tensor of that shape can be stretched to the target without the target growing."""
    return _broadcast(tuple(shape), tuple(target)) == tuple(target)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that both stretch to; None where they don't.

    torch has this too, thirty times slower: noticeable in a model's pass, which asks several times a layer.
    """
    if one == other:
        return one
    longest = max(len(one), len(other))
    pairs = list(zip((1,) * (longest - len(one)) + one, (1,) * (longest - len(other)) + other, strict=True))
    if any(a != b and a != 1 and b != 1 for a, b in pairs):
        return None
    return tuple(b if a == 1 else a for a, b in pairs)
