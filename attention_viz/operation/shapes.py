"""Shapes of query, key and value, with named rules.

Grouped key and value heads: Ainslie et al. 2023, "GQA", section 2.2.
"""

from collections.abc import Sequence
from typing import SupportsIndex

import torch
from torch import Tensor

from attention_viz.errors import ShapeError

# Types to compute with; eight bits and fewer are only for storing.
FLOATING = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def shape_of_weights(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """Return (…, query, key), leading axes broadcast after repeating key heads."""
    of_query, of_key = query.shape, key.shape
    if of_query[:-2] == of_key[:-2] == value.shape[:-2]:  # as in most calls, and asked for many times
        return (*of_query[:-1], of_key[-2])
    lead = _broadcast(_lead_of_group(key, query), _lead_of_group(value, query))
    lead = None if lead is None else _broadcast(tuple(query.shape[:-2]), lead)
    if lead is None:
        raise ShapeError(f"the leading axes must broadcast; {shapes_in_words(query, key, value)}")
    return (*lead, query.shape[-2], key.shape[-2])


def widened(tensor: Tensor) -> Tensor:
    """Convert half precision to float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def shared_heads(shared: Tensor, query: Tensor) -> Tensor:
    """Repeat key or value heads to match the query's."""
    return with_heads(shared, heads_of(query))


def with_heads(shared: Tensor, heads: int) -> Tensor:
    """Repeat each of several heads for its group; a single one stays."""
    group = heads // heads_of(shared) if heads_of(shared) > 1 else 1
    return shared.repeat_interleave(group, dim=-3) if group > 1 else shared


def products(query: Tensor, key: Tensor) -> Tensor:
    """Return query-key dot products, (…, head, query, key), without copies of grouped keys."""
    heads, shared = heads_of(query), heads_of(key)
    if not 1 < shared < heads or query.ndim < 3:
        return query @ key.mT
    apart = query.unflatten(-3, (shared, heads // shared))
    found = apart.flatten(-3, -2) @ key.mT
    return found.unflatten(-2, apart.shape[-3:-1]).flatten(-4, -3)


def of_head(tensor: Tensor, index: int, heads: int) -> Tensor:
    """Return one query head's slice, shared by all, by group, or its own."""
    if tensor.ndim < 3:
        return tensor
    return tensor[..., index // (heads // tensor.shape[-3]), :, :]


def apart(joined: Tensor, heads: int) -> Tensor:
    """Reshape (…, n, head · width) to (…, head, n, width)."""
    return joined.unflatten(-1, (heads, -1)).transpose(-3, -2)


def side_by_side(heads: Tensor) -> Tensor:
    """Reshape (…, head, n, width) to (…, n, head · width)."""
    return heads.transpose(-3, -2).flatten(-2)


def for_all_heads(allowed: Tensor | None, axes: int) -> Tensor | None:
    """Insert a head axis into a mask with only a batch axis."""
    return allowed if allowed is None or not 3 <= allowed.ndim <= axes else allowed.unsqueeze(-3)


def widths_of_a_head(d_model: int, heads: int, d_k: int | None, d_v: int | None) -> tuple[int, int]:
    """Return d_k and d_v, d_model / heads by default."""
    check_sizes(d_model=d_model, heads=heads)
    if (d_k is None or d_v is None) and d_model % heads:
        raise ShapeError(f"{uneven(d_model, heads)}, or pass d_k and d_v")
    d_k, d_v = (d_model // heads if width is None else width for width in (d_k, d_v))
    check_sizes(d_k=d_k, d_v=d_v)
    return d_k, d_v


def uneven(d_model: int, heads: int) -> str:
    """Explain an indivisible width and suggest others."""
    below, above = d_model // heads * heads, (d_model // heads + 1) * heads
    fitting = f"{below} or {above}" if below else str(above)
    return f"d_model {d_model} isn't a multiple of {heads} heads; use a multiple such as {fitting}"


def check_sizes(**sizes: int) -> None:
    """Refuse impossible sizes by name."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ShapeError(f"{name} must be a whole number, 1 or more; got {size!r}")


def check_width(name: str, tensor: Tensor, width_name: str, width: int) -> None:
    """Refuse an input that a projection can't take."""
    if tensor.ndim < 2 or tensor.shape[-1] != width:
        raise ShapeError(f"{name} must be (…, n, {width_name}) with {width_name} {width}; got {tuple(tensor.shape)}")


def positions(asked: slice | Sequence[int], count: int, axis: str, device: torch.device) -> Tensor:
    """Return rows or columns as position tensor."""
    chosen = range(count)[asked] if isinstance(asked, slice) else asked
    for position in chosen:
        if not 0 <= position < count:
            raise ShapeError(f"no {axis} {position}; there are {count}, counted from 0")
    return torch.tensor([int(position) for position in chosen], dtype=torch.long, device=device)


def shapes_in_words(query: Tensor, key: Tensor, value: Tensor) -> str:
    """Write the three shapes, to end a message."""
    return f"got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"


def is_whole(number: object) -> bool:
    """Return whether it is a whole number, numpy's included, not bool."""
    # Most are plain, and asking for what a type can do takes ten times as long.
    return type(number) is int or (isinstance(number, SupportsIndex) and not isinstance(number, bool))


def heads_of(tensor: Tensor) -> int:
    """Return the number of heads; 1 without a head axis."""
    return tensor.shape[-3] if tensor.ndim >= 3 else 1


def _lead_of_group(shared: Tensor, query: Tensor) -> tuple[int, ...]:
    if heads_of(shared) == 1:
        return tuple(shared.shape[:-2])
    return (*shared.shape[:-3], heads_of(query) if heads_of(query) > 1 else heads_of(shared))


def broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether a shape broadcasts to an unchanged target."""
    return _broadcast(tuple(shape), tuple(target)) == tuple(target)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the common shape, or None; thirty times faster than torch's, needed several times a layer."""
    if one == other:
        return one
    longest = max(len(one), len(other))
    pairs = list(zip((1,) * (longest - len(one)) + one, (1,) * (longest - len(other)) + other, strict=True))
    if any(a != b and a != 1 and b != 1 for a, b in pairs):
        return None
    return tuple(b if a == 1 else a for a, b in pairs)


def check_tensor(name: str, value: object) -> None:
    """Refuse tensors without readable numbers."""
    if not isinstance(value, Tensor):
        raise ShapeError(f"{name} must be a tensor; got {type(value).__name__}")
    if value.layout != torch.strided or value.is_meta:
        raise ShapeError(f"{name} must be a dense tensor with numbers; got {value.layout} on {value.device}")
