"""How query, key and value stand together: heads apart, shared and joined, and each rule about shapes told by name.

Key and value heads shared by a group of query heads: Ainslie et al. 2023, "GQA", section 2.2.
"""

from collections.abc import Sequence
from typing import SupportsIndex

import torch
from torch import Tensor

from attention_viz.errors import ShapeError

__all__ = [
    "FLOATING",
    "apart",
    "broadcasts",
    "check_sizes",
    "check_tensor",
    "check_width",
    "for_all_heads",
    "heads_of",
    "is_whole",
    "of_head",
    "positions",
    "products",
    "shape_of_weights",
    "shapes_in_words",
    "shared_heads",
    "side_by_side",
    "uneven",
    "widened",
    "widths_of_a_head",
]


# What can be computed with; eight bits and fewer are only for storing.
FLOATING = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def shape_of_weights(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """(…, query, key), the leading axes broadcast after key and value heads were repeated for the query's."""
    of_query, of_key = query.shape, key.shape
    if of_query[:-2] == of_key[:-2] == value.shape[:-2]:  # as in most calls, and asked for many times
        return (*of_query[:-1], of_key[-2])
    lead = _broadcast(_lead_of_group(key, query), _lead_of_group(value, query))
    lead = None if lead is None else _broadcast(tuple(query.shape[:-2]), lead)
    if lead is None:
        raise ShapeError(f"the leading axes don't broadcast; {shapes_in_words(query, key, value)}")
    return (*lead, query.shape[-2], key.shape[-2])


def widened(tensor: Tensor) -> Tensor:
    """Half precision as float32; anything wider as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def shared_heads(shared: Tensor, query: Tensor) -> Tensor:
    """Key or value, its heads repeated until there is one for each query head."""
    group = heads_of(query) // heads_of(shared) if heads_of(shared) > 1 else 1
    return shared.repeat_interleave(group, dim=-3) if group > 1 else shared


def products(query: Tensor, key: Tensor) -> Tensor:
    """Every query's dot product with every key, (…, head, query, key).

    The query heads that share a key head are multiplied with it together, without a copy of the key for each.
    """
    heads, shared = heads_of(query), heads_of(key)
    if not 1 < shared < heads or query.ndim < 3:
        return query @ key.mT
    apart = query.unflatten(-3, (shared, heads // shared))
    found = apart.flatten(-3, -2) @ key.mT
    return found.unflatten(-2, apart.shape[-3:-1]).flatten(-4, -3)


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
    """A mask with an axis for the heads put before its last two, where it has a batch axis and none for the heads."""
    return allowed if allowed is None or not 3 <= allowed.ndim <= axes else allowed.unsqueeze(-3)


def widths_of_a_head(d_model: int, heads: int, d_k: int | None, d_v: int | None) -> tuple[int, int]:
    """d_k and d_v, each d_model / heads where it isn't given."""
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
    """Refuse sizes of which nothing can be made, by name."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ShapeError(f"{name} has to be a whole number, 1 or more; got {size!r}")


def check_width(name: str, tensor: Tensor, width_name: str, width: int) -> None:
    """Refuse an input that a projection can't take."""
    if tensor.ndim < 2 or tensor.shape[-1] != width:
        raise ShapeError(f"{name} has to be (…, n, {width_name}) with {width_name} {width}; got {tuple(tensor.shape)}")


def positions(asked: slice | Sequence[int], count: int, axis: str, device: torch.device) -> Tensor:
    """Rows or columns asked for, as a tensor of positions."""
    chosen = range(count)[asked] if isinstance(asked, slice) else asked
    for position in chosen:
        if not 0 <= position < count:
            raise ShapeError(f"{axis} {position} was asked for; there are {count}, counted from 0")
    return torch.tensor([int(position) for position in chosen], dtype=torch.long, device=device)


def shapes_in_words(query: Tensor, key: Tensor, value: Tensor) -> str:
    """The shapes of the three, as the end of a message."""
    return f"got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"


def is_whole(number: object) -> bool:
    """Whether something counts: a whole number, numpy's included, and no truth value."""
    # Most are plain, and asking for what a type can do takes ten times as long.
    return type(number) is int or (isinstance(number, SupportsIndex) and not isinstance(number, bool))


def heads_of(tensor: Tensor) -> int:
    """How many heads query, key or value has; 1 where it has no axis for them."""
    return tensor.shape[-3] if tensor.ndim >= 3 else 1


def _lead_of_group(shared: Tensor, query: Tensor) -> tuple[int, ...]:
    """The leading axes that key or value has once its heads are repeated for the query's."""
    if heads_of(shared) == 1:
        return tuple(shared.shape[:-2])
    return (*shared.shape[:-3], heads_of(query) if heads_of(query) > 1 else heads_of(shared))


def broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
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


def check_tensor(name: str, value: object) -> None:
    """Refuse what holds no numbers that can be looked at one by one."""
    if not isinstance(value, Tensor):
        raise ShapeError(f"{name} has to be a tensor; got {type(value).__name__}")
    if value.layout != torch.strided or value.is_meta:
        raise ShapeError(f"{name} has to be a dense tensor with numbers; got one of {value.layout} on {value.device}")
