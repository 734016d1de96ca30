"""Find the head axis of queries, keys, values and weights that other code computed."""

from collections.abc import Sequence, Sized
from typing import Any, cast

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import is_whole

# (batch, head, position, width) as in torch and transformers; (batch, position, head, width) as in FlashAttention,
# TransformerLens and vLLM. The batch axis may be missing in both.
# The flat one, (batch, position, head · width), is that of projections, and of vLLM's attention layers.
LAYOUTS = ("bhsd", "bshd", "flat")
# How far a sum of weights may be from 1 to count as one of a row, in any precision.
_A_SHARE = 1e-2
# The labels of queries and keys, and the stream, as far as they were named.
Named = tuple[Sized | None, Sized | None, str | None]


def heads_first(
    query: Any, key: Any, value: Any, layout: str | None, d_k: int | None, named: Named, mask: Any
) -> tuple[Any, Any, Any]:
    """Move the head axis first; without a layout, refuse tensors that fit the other layout better."""
    if layout not in (None, *LAYOUTS):
        raise ShapeError(f"unknown layout {layout!r}; choose bhsd, bshd or flat")
    if (layout == "flat") != (d_k is not None):
        raise ShapeError(
            'layout="flat" needs the width of a head, such as d_k=64, and no other layout takes one; got '
            f"layout={layout!r}, d_k={d_k!r}"
        )
    if d_k is not None:
        query, key, value = _split(query, key, value, d_k)
    if layout in ("bshd", "flat"):
        swapped = [_swap(part) for part in (query, key, value)]
        return swapped[0], swapped[1], swapped[2]
    if layout is None:
        for of_query, of_key, of_mask in zip(_shapes(query), _shapes(key), _shapes(mask), strict=False):
            _check(of_query, of_key, of_mask, named)
    return query, key, value


def _split(query: Any, key: Any, value: Any, d_k: int) -> tuple[Any, Any, Any]:
    """Give flat tensors a head axis before their last; values have the heads of their keys."""
    if not is_whole(d_k) or d_k < 1:
        raise ShapeError(f"d_k must be a whole number, 1 or more; got {d_k!r}")
    parts = [list(cast("Sequence[Any]", one)) for one in (query, key, value) if isinstance(one, list | tuple)]
    if len(parts) < 3:
        return _split_layer(query, key, value, d_k)
    if len({len(one) for one in parts}) > 1:
        return query, key, value  # refused with other lists of unequal length
    layers = [_split_layer(*layer, d_k) for layer in zip(parts[0], parts[1], parts[2], strict=True)]
    return [one[0] for one in layers], [one[1] for one in layers], [one[2] for one in layers]


def _split_layer(query: Any, key: Any, value: Any, d_k: int) -> tuple[Any, Any, Any]:
    query, key = _in_heads(query, "query", d_k), _in_heads(key, "key", d_k)
    heads = key.shape[-2]
    width = value.shape[-1] if isinstance(value, Tensor) and value.ndim in (2, 3) else 0
    if not width or width % heads:
        raise ShapeError(
            f"with {heads} key heads, a flat value must be (…, position, {heads} · width); got "
            f"{tuple(getattr(value, 'shape', ())) or type(value).__name__}"
        )
    return query, key, value.unflatten(-1, (heads, width // heads))


def _in_heads(part: Any, name: str, d_k: int) -> Tensor:
    if not isinstance(part, Tensor) or part.ndim not in (2, 3) or part.shape[-1] % d_k or not part.shape[-1]:
        raise ShapeError(
            f"a flat {name} must be (position, head · d_k) or (batch, position, head · d_k), with d_k {d_k}; got "
            f"{tuple(getattr(part, 'shape', ())) or type(part).__name__}"
        )
    return part.unflatten(-1, (-1, d_k))


def check_weights_layout(weights: Tensor, named: Named) -> None:
    """Refuse weights whose head and query axes are likely swapped."""
    labels, key_labels, stream = named
    if weights.ndim not in (3, 4) or key_labels is not None or stream is not None:
        return
    heads, queries, keys = weights.shape[-3:]
    if labels is not None and len(labels) == queries:
        return
    if heads == keys != queries and bool(((weights.float().sum(dim=-1) - 1).abs() < _A_SHARE).all()):
        raise ShapeError(
            f"weights {tuple(weights.shape)} have as many keys as heads, but {queries} queries; they may be (…, "
            'query, head, key). Pass weights.transpose(-3, -2), or name the stream, such as stream="decoder"'
        )


def _swap(part: Any) -> Any:
    if isinstance(part, list | tuple):
        return [_swap(one) for one in cast("Sequence[Any]", part)]
    return part.transpose(-3, -2) if getattr(part, "ndim", 0) in (3, 4) else part


def _shapes(part: Any) -> list[tuple[int, ...]]:
    entries = cast("Sequence[Any]", part) if isinstance(part, list | tuple) else [part]
    return [tuple(getattr(one, "shape", ())) for one in entries]


def _check(
    query: tuple[int, ...],
    key: tuple[int, ...],
    mask: tuple[int, ...],
    named: Named,
) -> None:
    if len(query) not in (3, 4) or len(key) != len(query):
        return
    labels, key_labels, stream = named
    (heads, queries, _), (key_heads, keys, _) = query[-3:], key[-3:]
    wrong = ""
    if labels is not None and len(labels) != queries and len(labels) == heads:
        wrong = f"there are {len(labels)} labels"
    elif key_heads and keys and heads % key_heads and queries % keys == 0:
        wrong = f"keys {key} don't fit"
    elif len(mask) >= 2 and mask[-2:] == (heads, key_heads) != (queries, keys):
        wrong = f"the mask is {mask[-2]} × {mask[-1]}"
    elif labels is None and key_labels is None and stream is None and heads == key_heads:
        if queries > keys and queries % keys == 0:
            wrong = f"keys {key} would be fewer positions with as many heads"
        elif not mask and heads > queries == keys:
            wrong = f"{heads} may be the number of positions"
    if wrong:
        raise ShapeError(
            f"queries {query} would be {heads} heads × {queries} positions, but {wrong}. For (…, position, head, "
            'width) pass layout="bshd"; for heads first, layout="bhsd"'
        )
