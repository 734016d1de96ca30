"""Tell head axes from position axes, or refuse to guess."""

from collections.abc import Sequence, Sized
from typing import Any, cast

from torch import Tensor

from attention_viz.errors import ShapeError

__all__ = ["LAYOUTS", "Named", "check_weights_layout", "heads_first"]

# (batch, head, position, width) as in torch and transformers; (batch, position, head, width) as in FlashAttention,
# TransformerLens and vLLM. The batch axis may be missing in both.
LAYOUTS = ("bhsd", "bshd")
# How far a sum of weights may be from 1 to count as one of a row, in any precision.
_A_SHARE = 1e-2
# The labels of queries and keys, and the stream, as far as they were named.
Named = tuple[Sized | None, Sized | None, str | None]


def heads_first(
    query: Any,
    key: Any,
    value: Any,
    layout: str | None,
    named: Named,
    mask: Any,
) -> tuple[Any, Any, Any]:
    """Move the head axis before the position axis.

    Args:
        layout: one of `LAYOUTS`; None refuses tensors that fit the other layout better.
    """
    if layout not in (None, *LAYOUTS):
        raise ShapeError(f"unknown layout {layout!r}; choose {' or '.join(LAYOUTS)}")
    if layout == "bshd":
        swapped = [_swap(part) for part in (query, key, value)]
        return swapped[0], swapped[1], swapped[2]
    if layout is None:
        for of_query, of_key, of_mask in zip(_shapes(query), _shapes(key), _shapes(mask), strict=False):
            _check(of_query, of_key, of_mask, named)
    return query, key, value


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
            f"weights {tuple(weights.shape)} have as many keys as heads, but {queries} queries: nothing tells whether "
            "they are (…, query, head, key). Pass weights.transpose(-3, -2) if so; else name the stream, such as "
            'stream="decoder"'
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
            wrong = f"nothing says that {heads} isn't the number of positions"
    if wrong:
        raise ShapeError(
            f"queries {query} would be {heads} heads × {queries} positions, but {wrong}. For (…, position, head, "
            f'width) pass layout="bshd", or transpose(-3, -2) each; if they are heads first, pass layout="bhsd"'
        )
