"""Who may look at whom. A mask here is always `allowed`: boolean, True where a query may look at a key."""

import functools

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention_viz.errors import ShapeError

__all__ = ["causal", "combine", "padding", "prefix", "sliding_window"]


def causal(queries: int, keys: int | None = None) -> Bool[Tensor, "query key"]:
    """No looking ahead: each position sees itself and what came before.

    Args:
        queries: how many rows.
        keys: how many columns, as many as rows by default. With more, the queries are the last of the keys'
            positions, as in a decoder that continues a text: the last query sees the last key.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    _check_count("queries", queries)
    keys = queries if keys is None else keys
    _check_count("keys", keys)
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal=keys - queries)


def sliding_window(queries: int, window: int) -> Bool[Tensor, "query key"]:
    """Each position sees those less than `window` away on either side; combine with `causal` for a decoder.

    Source: Beltagy et al. 2020, "Longformer", section 3.1.

    Raises:
        ShapeError: a window under 1, in which nobody would see even themselves.
    """
    _check_count("queries", queries)
    if window < 1:
        raise ShapeError(f"a window of {window} was asked for; it has to be 1 (each sees itself only) or more")
    position = torch.arange(queries)
    return (position[:, None] - position[None, :]).abs() < window


def prefix(queries: int, prefix: int) -> Bool[Tensor, "query key"]:
    """Causal, and the first `prefix` keys open to everyone.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (T5), figure 3.

    Raises:
        ShapeError: a prefix below 0 or longer than the text.
    """
    allowed = causal(queries)
    if not 0 <= prefix <= queries:
        raise ShapeError(f"a prefix of {prefix} was asked for; it has to be from 0 to the {queries} positions")
    allowed[:, :prefix] = True
    return allowed


def padding(token_ids: Int[Tensor, "*batch key"], padding_id: int) -> Bool[Tensor, "*batch 1 key"]:
    """Nobody looks at padding.

    Args:
        token_ids: (batch, n) ids, or (n,) for one text.
        padding_id: the id that fills up the shorter texts.

    Returns:
        (batch, 1, key), or (1, key): the same for every query. Put an axis for the heads after the batch's
        (`[:, None]`) before it meets (batch, head, query, key).
    """
    return (token_ids != padding_id).unsqueeze(-2)


def combine(*allowed: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """Allowed only where every mask allows it; the shapes broadcast.

    Raises:
        ShapeError: no mask at all, or shapes that don't broadcast.
    """
    if not allowed:
        raise ShapeError("combine needs at least one mask; got none")
    try:
        return functools.reduce(torch.logical_and, allowed)
    except RuntimeError:
        shapes = ", ".join(str(tuple(one.shape)) for one in allowed)
        raise ShapeError(f"masks need shapes that broadcast together; got {shapes}") from None


def _check_count(name: str, count: int) -> None:
    if count < 0:
        raise ShapeError(f"{name} is a number of positions, 0 or more; got {count}")
