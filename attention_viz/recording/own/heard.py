"""One attention call, as torch got it and as we compute it."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.kernel import kernel_weights
from attention_viz.operation.shapes import shared_heads
from attention_viz.operation.terms import Term, map_terms
from attention_viz.trace.given.from_tensors import differing, sampled

# Below this a number that is added means "blocked", as in the recorder of pretrained models: in a row that has
# anything above it, it leaves a weight of exactly 0.
_BLOCKED_BELOW = -9e3


@dataclass(frozen=True, eq=False)
class SdpaArguments:
    """Arguments of `torch.nn.functional.scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def check(self, where: str) -> None:
        """Refuse dropout and tensors that aren't plain."""
        if self.dropout_p:
            raise UnsupportedModel(
                f"{where} drops weights at random (dropout {self.dropout_p:g}); call module.eval() first"
            )
        for name in ("query", "key", "value", "attn_mask"):
            tensor = getattr(self, name)
            if tensor is None or (type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested):
                continue
            kind = "nested tensors" if tensor.is_nested else f"a {type(tensor).__name__}"
            raise UnsupportedModel(
                f"{where} passes {kind} to attention as its {name}; use plain tensors, and no torch.compile inside "
                "record()"
            )

    def attention(self) -> Attention:
        """Return the same call of ours."""
        allowed, bias = _split(self.attn_mask)
        if self.is_causal:
            # As torch has it: the first query sees the first key, however many keys there are.
            shape = (self.query.shape[-2], self.key.shape[-2])
            closed = torch.ones(shape, dtype=torch.bool, device=self.query.device).tril()
            allowed = closed if allowed is None else allowed & closed
        return attend(self.query, self.key, self.value, allowed, scale=self.scale, bias=bias)

    def kept(self) -> "SdpaArguments":
        """Return detached copies: a KV cache is overwritten later."""
        names = ("query", "key", "value", "attn_mask")
        tensors = {name: getattr(self, name) for name in names}
        copies: dict[str, Any] = {
            name: tensor.detach().clone() for name, tensor in tensors.items() if tensor is not None
        }
        return replace(self, **copies)


@dataclass(frozen=True)
class Against:
    """A result's difference from torch's own.

    Attributes:
        error: relative to torch's largest number; NaN in both, and rows without a key, don't count.
        without_key: rows that may attend to no key, where torch gives NaN.
        not_numbers: other rows with NaN, from the inputs.
    """

    error: float
    without_key: int
    not_numbers: int

    @property
    def nan(self) -> int:
        """All of torch's rows with NaN."""
        return self.without_key + self.not_numbers


@dataclass(frozen=True, eq=False)
class HeardCall:
    """One recorded call.

    Attributes:
        attention: with all leading axes.
        module: the calling class, or the function's name if there is none.
        path: its name inside the outermost module, or "".
        crossing: whether queries and keys are different tokens; None if unknown.
        extra: names of appended keys.
    """

    asked: SdpaArguments
    attention: Attention
    module: str
    path: str
    root: str
    crossing: bool | None
    extra: tuple[str, ...]
    against: Against

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes before queries and keys."""
        return self.attention.shape[:-2]

    def rows(self, leading: str | None) -> int:
        """Return the number of batch rows."""
        if len(self.lead) > 2:
            raise ShapeError(
                f"{self.where} attends over {self.attention.shape}; use (batch, head, query, key) or fewer axes"
            )
        if len(self.lead) == 1 and self.lead != (1,) and leading is None:
            raise ShapeError(
                f"{self.where} attends over {self.attention.shape}, whose first axis may count heads or batch rows; "
                'give leading="head" or leading="batch"'
            )
        if len(self.lead) == 1:
            return self.lead[0] if leading == "batch" else 1
        return self.lead[0] if self.lead else 1

    def of_row(self, row: int, leading: str | None) -> Attention:
        """Return one batch row's call, head first."""
        lead = self.lead
        if not lead:
            return map_terms(self.attention, _with_head)
        if len(lead) == 1 and leading != "batch":
            return self.attention

        def of_term(term: Term, value: Any) -> Any:
            if not term.is_matrix or value.ndim != len(lead) + 2:
                return value
            chosen = value[row if len(value) > 1 else 0]
            return chosen if len(lead) == 2 else chosen[None]

        return map_terms(self.attention, of_term)

    def weight_error(self, row: int, leading: str | None) -> tuple[float, int | None]:
        """Return the weights' error against torch's, and the queries compared; None for all."""
        call = self.of_row(row, leading)
        some = sampled(call.shape)
        rows = range(call.shape[-2]) if some is None else some.tolist()
        ours = call if some is None else call.rows(rows)
        keys, mask = shared_heads(call.key, call.query), self._mask(row, leading)
        theirs = [
            kernel_weights(
                ours.query[head] if len(ours.query) > 1 else ours.query[0],
                keys[head if len(keys) > 1 else 0],
                None if mask is None else mask[head if len(mask) > 1 else 0][rows],
                self.asked.scale,
            )
            for head in range(call.shape[0])
        ]
        return differing(ours.weights, torch.stack(theirs)), None if some is None else len(rows)

    def _mask(self, row: int, leading: str | None) -> Tensor | None:
        """Return torch's mask of one row, (head or 1, query, key)."""
        shape, mask = self.attention.shape[-2:], self.asked.attn_mask
        if self.asked.is_causal:
            closed = torch.ones(shape, dtype=torch.bool, device=self.attention.query.device).tril()
            mask = closed if mask is None else _closed(mask, closed)
        if mask is None:
            return None
        mask = mask.expand(*mask.shape[:-2], *shape)
        if mask.ndim == 4 or (mask.ndim == 3 and len(self.lead) == 1 and leading == "batch"):
            mask = mask[row if len(mask) > 1 else 0]
        return mask if mask.ndim == 3 else mask[None]

    @property
    def where(self) -> str:
        """The calling module, in words."""
        return f"{self.root}.{self.path} ({self.module})" if self.path else self.module


def off_by(ours: Tensor, theirs: Tensor, empty: Tensor | None) -> Against:
    """Compare our result with torch's; `empty` is True for rows that may attend to no key."""
    if ours.shape != theirs.shape:
        return Against(math.inf, 0, 0)
    none = theirs.isnan()
    rows = none.any(dim=-1)
    closed = rows & empty if empty is not None else torch.zeros_like(rows)
    # Torch has no number for the rows without a key: that is passed on, and counted. What is NaN in both is equal.
    excused = none & (closed[..., None] | ours.isnan())
    error = differing(ours.masked_fill(excused, 0), theirs.masked_fill(excused, 0))
    return Against(error, int(closed.sum()), int((rows & ~closed).sum()))


def empty_rows(attention: Attention) -> Tensor | None:
    """Return the queries that may attend to no key, (…, query); None if there are none."""
    if attention.allowed is None or bool((found := attention.allowed.any(dim=-1)).all()):
        return None
    return ~found.expand(attention.shape[:-1])


def _with_head(term: Term, value: Any) -> Any:
    return value[None] if term.is_matrix else value


def _closed(mask: Tensor, closed: Tensor) -> Tensor:
    return mask & closed if mask.dtype == torch.bool else mask.masked_fill(~closed, -math.inf)


def _split(mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Split a mask, True for allowed or additive, into (allowed, bias); None if nothing is blocked or added."""
    if mask is None:
        return None, None
    if mask.dtype == torch.bool:
        return (None if bool(mask.all()) else mask), None
    mask = mask.detach() if not mask.requires_grad else mask
    never, low = torch.isneginf(mask), mask < _BLOCKED_BELOW
    # Where a whole row is low, the numbers still tell its keys apart.
    blocked = torch.where(low.all(dim=-1, keepdim=True), never, low)
    bias = mask.masked_fill(blocked, 0)
    return (~blocked if bool(blocked.any()) else None), (bias if bool((bias != 0).any()) else None)
