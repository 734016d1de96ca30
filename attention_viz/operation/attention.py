"""softmax(Q Kᵀ / √d_k) V with all transformer terms.

Source: Vaswani et al. 2017, "Attention Is All You Need", eq. 1; softcap: Gemma Team 2024 ("Gemma 2", section 2);
sinks as a learned logit: OpenAI 2025 (gpt-oss model card, section 2.3).
"""

import functools
import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from attention_viz.errors import ShapeError
from attention_viz.operation.checks import check_call
from attention_viz.operation.reach import is_causal
from attention_viz.operation.shapes import (
    is_whole,
    of_head,
    positions,
    products,
    shape_of_weights,
    shared_heads,
    widened,
)
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.operation.terms import Term, along, has_others, map_terms, terms_of

__all__ = [
    "Attention",
    "attend",
    "autocast_kinds",
    "fused",
    "fusible",
    "rows_of_term",
    "term_of_head",
    "without_autocast",
]
# Rows of weights computed at a time where only part of a matrix is wanted: 512 rows of 32,768 keys are 64 MiB.
_ROWS_AT_A_TIME = 512
# The terms that torch's fused kernel knows.
_FUSED = ("query", "key", "value", "allowed", "scale", "bias")


def autocast_kinds() -> tuple[str, ...]:
    """Return this thread's device kinds inside `torch.autocast`, such as "cpu"."""
    accelerator = torch.accelerator.current_accelerator()
    kinds = ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    return tuple(kind for kind in kinds if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind))


@contextmanager
def without_autocast() -> Generator[None]:
    """Compute in the precision that the numbers have."""
    with ExitStack() as stack:
        for kind in autocast_kinds():
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def attend(
    query: Float[Tensor, "... query _d_k"],
    key: Float[Tensor, "... key _d_k"],
    value: Float[Tensor, "... _key d_v"],
    allowed: Bool[Tensor, "... _query _key"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "... _query _key"] | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, "..."] | None = None,
) -> "Attention":
    """Attend from each query to its allowed keys and mix their values.

    The order is: query·key × scale → softcap·tanh(·/softcap) → + bias → blocked cells −∞ → softmax → · value.
    Leading axes broadcast; the last of them is the head, and key and value may have fewer heads than query
    (each is then shared by a group of consecutive query heads). Results are computed on access.

    Args:
        query: one vector per query, (…, query, d_k).
        key: one vector per key, (…, key, d_k).
        value: one vector per key, (…, key, d_v).
        allowed: True where a query may attend to a key, broadcast to (…, query, key). A row with nothing allowed
            gives zeros.
        scale: multiplies the scores; 1/√d_k by default.
        bias: added to the scaled scores, broadcast to (…, query, key).
        softcap: bounds the scaled scores to ±softcap, smoothly.
        sinks: one extra logit per head, shape (head,). It takes its share of the softmax and is dropped, so that a
            row sums to less than 1.

    Raises:
        ShapeError: shapes, kinds of number or terms that don't fit together.
    """
    if not isinstance(query, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"query must be a tensor; got {type(query).__name__}")
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1:].numel() or 1)
    return Attention(query, key, value, allowed, scale, bias, softcap, sinks)


@dataclass(frozen=True, eq=False, repr=False)
class Attention(ShortRepr):
    """One attention call: its inputs, and everything that follows from them, computed on access.

    Only the inputs are stored: keep a result that you use again. Results have the inputs' precision, also inside
    `torch.autocast`.
    """

    query: Float[Tensor, "... query _d_k"] = field(metadata=along("query", "d_k", needed=True))
    key: Float[Tensor, "... key _d_k"] = field(metadata=along("key", "d_k", needed=True))
    value: Float[Tensor, "... _key d_v"] = field(metadata=along("key", "d_v", needed=True))
    allowed: Bool[Tensor, "... _query _key"] | None = field(metadata=along("query", "key", boolean=True))
    scale: float = field(metadata=along(logit=True, needed=True))
    bias: Float[Tensor, "... _query _key"] | None = field(default=None, metadata=along("query", "key", logit=True))
    softcap: float | None = field(default=None, metadata=along(logit=True, positive=True))
    sinks: Float[Tensor, "..."] | None = field(default=None, metadata=along("head", logit=True))

    def __post_init__(self) -> None:
        """Refuse misfits in plain words, before torch does."""
        check_call(self)
        for term in terms_of(type(self)):
            # torch takes whole numbers up to 64 bits only.
            if term.is_number and isinstance(number := getattr(self, term.name), int):
                object.__setattr__(self, term.name, float(number))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, (…, query, key), without computing them."""
        return shape_of_weights(self.query, self.key, self.value)

    @property
    def scores(self) -> Float[Tensor, "... query key"]:
        """How well each query matches each key: their dot product, before scaling.

        Half precision is multiplied in float32, as inside torch's fused kernel, so that large scores don't overflow.
        """
        with without_autocast():
            return products(widened(self.query), widened(self.key))

    @property
    def scaled(self) -> Float[Tensor, "... query key"]:
        """The scores times the scale, before softcap, bias and mask."""
        return self.scores * self.scale

    @property
    def masked(self) -> Float[Tensor, "... query key"]:
        """The softmax's input: scaled, soft-capped, biased, and −∞ where a query may not attend."""
        logits = self.scaled
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        if self.bias is not None:
            logits = logits + self.bias
        if self.allowed is not None:
            logits = logits.masked_fill(~self.allowed, -math.inf)
        return logits

    @property
    def weights(self) -> Float[Tensor, "... query key"]:
        """How much of each value a query takes: each row sums to 1, to less with sinks, to 0 with nothing allowed."""
        return _softmax(self.masked, _column(self.sinks)).to(self.query.dtype)

    @property
    def output(self) -> Float[Tensor, "... query d_v"]:
        """The values mixed by the weights.

        Uses torch's fused kernel if the terms allow it. The kernel never holds the weights in memory.
        """
        with without_autocast():
            return _mixed(self)

    def head(self, index: int) -> "Attention":
        """Return one head alone, with its group's key and value: (query, d_k) if the call was (head, query, d_k).

        Raises:
            ShapeError: an unknown head, or no head axis.
        """
        if len(self.shape) < 3:
            raise ShapeError(f"can't take head {index} from attention without a head axis; its shape is {self.shape}")
        heads = self.shape[-3]
        if not is_whole(index) or not 0 <= index < heads:
            raise ShapeError(f"no head {index!r}; this attention has {heads} heads, counted from 0")
        return map_terms(self, lambda term, value: term_of_head(term, value, index, heads))

    def rows(self, queries: slice | Sequence[int]) -> "Attention":
        """Return this call for some of its queries, with all its keys.

        Args:
            queries: which rows, as a slice or positions.

        Raises:
            ShapeError: a position outside the text.
        """
        return _rows(self, positions(queries, self.shape[-2], "query", self.query.device))

    def tile(
        self, head: int, queries: slice | Sequence[int], keys: slice | Sequence[int]
    ) -> Float[Tensor, "... tile_query tile_key"]:
        """Return a rectangle of the exact weights, without the whole matrix in memory.

        Args:
            head: which head, from 0.
            queries: which rows, as a slice or positions.
            keys: which columns, as a slice or positions.

        Raises:
            ShapeError: no such head, or a position outside the text.
        """
        one = self.head(head)
        rows = positions(queries, one.shape[-2], "query", self.query.device)
        columns = positions(keys, one.shape[-1], "key", self.query.device)
        pieces = [_rows(one, some).weights[..., columns] for some in rows.split(_ROWS_AT_A_TIME)]
        return torch.cat(pieces, dim=-2)


def _softmax(logits: Tensor, sinks: Tensor | None) -> Tensor:
    """Fully blocked rows become 0, in the gradient too."""
    blocked = torch.isneginf(logits).all(dim=-1, keepdim=True)
    logits = logits.masked_fill(blocked, 0)
    if sinks is None:
        return logits.softmax(dim=-1).masked_fill(blocked, 0)
    column = sinks.to(logits.dtype).expand(*logits.shape[:-1], 1)
    return torch.cat([logits, column], dim=-1).softmax(dim=-1)[..., :-1].masked_fill(blocked, 0)


def _mixed(call: Attention) -> Float[Tensor, "... query d_v"]:
    if not fusible(call):
        return call.weights @ shared_heads(call.value, call.query)
    return _fused(call, call.bias is None and is_causal(call.allowed, call.shape[-2:]))


def fusible(call: Attention) -> bool:
    """Return whether torch's fused kernel fits; biases need the query's precision."""
    return not has_others(call, _FUSED) and (call.bias is None or call.bias.dtype == call.query.dtype)


def _fused(call: Attention, closed: bool) -> Tensor:
    lead = call.shape[:-2]
    output = fused(map_terms(call, functools.partial(_spread, call.query, lead)), closed=closed)
    return output.reshape(*lead, *output.shape[-2:])


def _spread(query: Tensor, lead: Sequence[int], term: Term, value: Any) -> Any:
    if not term.is_matrix:
        return value
    # A query without heads of its own meets each head of keys that have some.
    value = shared_heads(value, query) if term.axes.names[0] == "key" else value
    return _in_four_axes(value.expand(*lead, *value.shape[-2:]) if term.name == "query" else value, lead)


def fused(call: Attention, *, closed: bool) -> Float[Tensor, "_batch _head query d_v"]:
    """Compute a `fusible` call's `attend(…).output`, (batch, head, position, width), by torch's fused kernel."""
    query, key, value, mask = call.query, call.key, call.value, call.allowed
    if closed:
        mask = None
    elif call.bias is not None:
        mask = call.bias if mask is None else call.bias.masked_fill(~mask, -math.inf)
    # Without a mask the kernel shares heads by itself, without a copy of them.
    grouped = mask is None and key.shape[1] == value.shape[1] != query.shape[1]
    if not grouped:
        key, value = shared_heads(key, query), shared_heads(value, query)
    return functional.scaled_dot_product_attention(
        query, key, value, mask, is_causal=closed, scale=call.scale, enable_gqa=grouped
    )


def _in_four_axes(tensor: Tensor, lead: Sequence[int]) -> Tensor:
    if len(lead) > 2:
        tensor = tensor.expand(*lead, *tensor.shape[-2:]).flatten(0, -4)
    while tensor.ndim < 4:
        tensor = tensor.unsqueeze(0)
    return tensor


def term_of_head(term: Term, value: Any, index: int, heads: int) -> Any:
    """Take one head's part of (…, head) or (…, 1); a lone number stays."""
    if term.is_matrix:
        return of_head(value, index, heads)
    if term.is_number or value.ndim == 0:
        return value
    return value[..., index if value.shape[-1] > 1 else 0]


def _column(sinks: Tensor | None) -> Tensor | None:
    """(head, 1, 1), or a lone number."""
    return None if sinks is None else sinks[..., None, None]


def _rows(call: Attention, rows: Tensor) -> Attention:
    return map_terms(call, functools.partial(rows_of_term, rows, call.shape[-2]))


def rows_of_term(rows: Tensor, queries: int, term: Term, value: Any) -> Any:
    """Take some rows of a term with a row per query."""
    return value[..., rows, :] if term.has_queries and value.shape[-2] == queries else value
