"""Masks, always `allowed`: True if a query may look at a key."""

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
    if type(window) is not int or window < 1:
        raise ShapeError(
            f"a window of {window!r} was asked for; it has to be 1 (each sees itself only) or more, a whole number"
        )
    position = torch.arange(queries)
    # Nobody is further away than there are positions, and a tensor knows no larger numbers than of 64 bits.
    return (position[:, None] - position[None, :]).abs() < min(window, queries + 1)


def prefix(queries: int, prefix: int) -> Bool[Tensor, "query key"]:
    """Causal, and the first `prefix` keys open to everyone.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (T5), figure 3.

    Raises:
        ShapeError: a prefix below 0 or longer than the text.
    """
    allowed = causal(queries)
    if type(prefix) is not int or not 0 <= prefix <= queries:
        raise ShapeError(f"a prefix of {prefix!r} was asked for; it has to be from 0 to the {queries} positions")
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

    Raises:
        ShapeError: no tensor of ids, or one without numbers; a padding id that is none.
    """
    check_tensor("token_ids", token_ids)
    if type(padding_id) is not int or not -(2**63) <= padding_id < 2**63:
        raise ShapeError(f"a padding id of {padding_id!r} was given; it has to be a whole number of 64 bits")
    return (token_ids != padding_id).unsqueeze(-2)


def combine(*allowed: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """Allowed only where every mask allows it; the shapes broadcast.

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
        raise ShapeError(f"masks need shapes that broadcast together; got {shapes}") from None


def _check_count(name: str, count: int) -> None:
    if type(count) is not int or count < 0:
        raise ShapeError(f"{name} is a number of positions, 0 or more; got {count!r}")


@dataclass(frozen=True)
class Pattern:
    """What a mask is called, and the numbers that go with the name.

    Attributes:
        name: "full" (nothing blocked), "causal", "window", "causal window", "prefix", "nothing" (all blocked), or
            "other" for what has no name here. Padding is told apart from it.
        window: of "window" and "causal window", the width, as `sliding_window` takes it.
        prefix: of "prefix", how many keys are open to everyone.
        padding: the keys at which nobody may look, by position.
    """

    name: str
    window: int | None = None
    prefix: int | None = None
    padding: tuple[int, ...] = ()

    def __str__(self) -> str:
        """End a sentence: "causal, and 2 positions of padding"."""
        words = {
            "full": "full (everyone may look at everyone)",
            "causal": "causal (nobody looks ahead)",
            "window": f"a sliding window of {self.window} (only keys less than {self.window} away)",
            "causal window": f"causal with a sliding window of {self.window} (each sees itself and up to "
            f"{(self.window or 1) - 1} before)",
            "prefix": f"a prefix (the first {self.prefix} keys are open to everyone, the rest is causal)",
            "nothing": "everything is blocked",
            "other": "a pattern that has no name here",
        }[self.name]
        if not self.padding or self.name == "nothing":
            return words
        count = len(self.padding)
        return f"{words}, and nobody looks at {count} position{'s' if count > 1 else ''} of padding"


def recognise(allowed: Bool[Tensor, "query key"] | None) -> Pattern:
    """Tell a mask by its cells. The simplest name wins: a window as wide as the text is "full".

    A key that nobody may look at counts as padding; the same position's own row, which models fill as they like, then
    doesn't matter.

    Args:
        allowed: True where a query may look at a key; None where nothing is blocked.

    Raises:
        ShapeError: it is no boolean matrix.
    """
    if allowed is not None:
        check_tensor("allowed", allowed)
    if allowed is not None and (allowed.dtype != torch.bool or allowed.ndim != 2):
        found = f"{allowed.dtype} {tuple(allowed.shape)}"
        raise ShapeError(f"allowed has to be boolean, (query, key), True where a query may look; got {found}")
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
