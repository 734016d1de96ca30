"""Masks, always `allowed`: True if a query may attend to a key."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.operation.shapes import check_tensor

__all__ = ["Pattern", "causal", "combine", "padding", "prefix", "recognise", "sliding_window"]


def __dir__() -> list[str]:
    """List public names."""
    return sorted(__all__)


def causal(queries: int, keys: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each position attend to itself and to earlier ones.

    Args:
        queries: number of rows.
        keys: number of columns, as many as rows by default. With more, the queries are the last of the keys'
            positions, as in a decoder that continues a text: the last query sees the last key.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    _check_count("queries", queries)
    keys = queries if keys is None else keys
    _check_count("keys", keys)
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal=keys - queries)


def sliding_window(queries: int, window: int) -> Bool[Tensor, "query key"]:
    """Let each position attend to those less than `window` away on either side; for a decoder, combine with `causal`.

    Source: Beltagy et al. 2020, "Longformer", section 3.1.

    Raises:
        ShapeError: a window under 1.
    """
    _check_count("queries", queries)
    if type(window) is not int or window < 1:
        raise ShapeError(f"window must be a whole number, 1 (each attends to itself only) or more; got {window!r}")
    position = torch.arange(queries)
    # No position is further away than the length, and a tensor holds at most 64 bits.
    return (position[:, None] - position[None, :]).abs() < min(window, queries + 1)


def prefix(queries: int, prefix: int) -> Bool[Tensor, "query key"]:
    """Let each position attend to itself, to earlier ones and to the first `prefix` keys.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (T5), figure 3.

    Raises:
        ShapeError: a prefix below 0 or longer than the text.
    """
    allowed = causal(queries)
    if type(prefix) is not int or not 0 <= prefix <= queries:
        raise ShapeError(f"prefix must be a whole number from 0 to the {queries} positions; got {prefix!r}")
    allowed[:, :prefix] = True
    return allowed


def padding(token_ids: Int[Tensor, "*batch key"], padding_id: int) -> Bool[Tensor, "*batch 1 key"]:
    """Block attention to padding.

    Args:
        token_ids: (batch, n) ids, or (n,) for one text.
        padding_id: the id that fills up the shorter texts.

    Returns:
        (batch, 1, key), or (1, key): the same for every query. Put an axis for the heads after the batch's
        (`[:, None]`) before it meets (batch, head, query, key).

    Raises:
        ShapeError: `token_ids` isn't a tensor with numbers, or `padding_id` isn't a whole number.
    """
    check_tensor("token_ids", token_ids)
    if type(padding_id) is not int or not -(2**63) <= padding_id < 2**63:
        raise ShapeError(f"padding_id must be a 64-bit whole number; got {padding_id!r}")
    return (token_ids != padding_id).unsqueeze(-2)


def combine(*allowed: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """Allow only the pairs that every mask allows; the shapes broadcast.

    Raises:
        ShapeError: no mask at all, or shapes that don't broadcast.
    """
    if not allowed:
        raise ShapeError("combine needs at least one mask; got none")
    for one in allowed:
        check_tensor("a mask", one)
    try:
        return functools.reduce(torch.logical_and, allowed)
    except RuntimeError:
        shapes = ", ".join(str(tuple(one.shape)) for one in allowed)
        raise ShapeError(f"masks must broadcast together; got shapes {shapes}") from None


def _check_count(name: str, count: int) -> None:
    if type(count) is not int or count < 0:
        raise ShapeError(f"{name} must be a whole number, 0 or more; got {count!r}")


@dataclass(frozen=True)
class Pattern:
    """A mask's name and its numbers.

    Attributes:
        name: "full" (nothing blocked), "causal", "window", "causal window", "prefix", "nothing" (all blocked), or
            "other" for any other mask. Padding doesn't change the name.
        window: the width of "window" and "causal window", as `sliding_window` takes it.
        prefix: for "prefix", the number of keys open to every query.
        padding: the positions of keys that are blocked for every query.
    """

    name: str
    window: int | None = None
    prefix: int | None = None
    padding: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Describe the mask at the end of a sentence, such as "full …, and 2 positions of padding are blocked"."""
        words = {
            "full": "full (every query may attend to every key)",
            "causal": "causal (no query attends to a later key)",
            "window": f"a sliding window of {self.window} (only keys less than {self.window} away)",
            "causal window": f"causal with a sliding window of {self.window} (each attends to itself and up to "
            f"{(self.window or 1) - 1} before)",
            "prefix": f"a prefix (the first {self.prefix} keys are open to every query, the rest is causal)",
            "nothing": "everything is blocked",
            "other": "a pattern without a name",
        }[self.name]
        if not self.padding or self.name == "nothing":
            return words
        count = len(self.padding)
        blocked = "1 position of padding is" if count == 1 else f"{count} positions of padding are"
        return f"{words}, and {blocked} blocked"


def recognise(allowed: Bool[Tensor, "query key"] | None) -> Pattern:
    """Name a mask by its cells. The simplest name wins: a window as wide as the text is "full".

    A key that is blocked for every query counts as padding. The row at the same position is then ignored, since models
    fill it as they like.

    Args:
        allowed: True where a query may attend to a key; None if nothing is blocked.

    Raises:
        ShapeError: it isn't a boolean matrix.
    """
    if allowed is not None:
        check_tensor("allowed", allowed)
    if allowed is not None and (allowed.dtype != torch.bool or allowed.ndim != 2):
        found = f"{allowed.dtype} {tuple(allowed.shape)}"
        raise ShapeError(f"allowed must be boolean, (query, key), True where a query may attend; got {found}")
    if allowed is None or bool(allowed.all()):
        return Pattern("full")
    if not bool(allowed.any()):
        return Pattern("nothing")
    allowed = allowed.cpu()
    queries, keys = allowed.shape
    open_keys = allowed.any(dim=0)
    padding = tuple(torch.nonzero(~open_keys).flatten().tolist())
    real = open_keys if queries == keys else torch.ones(queries, dtype=torch.bool)
    for pattern, candidate in _candidates(allowed[real], real, keys):
        if torch.equal(allowed[real], (candidate & open_keys)[real]):
            return replace(pattern, padding=padding)
    return Pattern("other", padding=padding)


def _candidates(rows: Tensor, real: Tensor, keys: int) -> Iterator[tuple[Pattern, Tensor]]:
    """Simplest first."""
    queries = len(real)
    yield Pattern("full"), torch.ones(queries, keys, dtype=torch.bool)
    yield Pattern("causal"), causal(queries, keys)
    if queries != keys or not bool(rows.any()):
        return
    position = torch.arange(keys)
    away = (position[real][:, None] - position[None, :]).abs()
    window = int(away[rows].max()) + 1
    yield Pattern("window", window=window), sliding_window(queries, window)
    yield Pattern("causal window", window=window), sliding_window(queries, window) & causal(queries)
    opened = int(torch.nonzero(rows[0]).amax()) + 1 if bool(rows[0].any()) else 0
    yield Pattern("prefix", prefix=opened), prefix(queries, opened)
