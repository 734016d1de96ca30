"""Joins the chunks that a module attends over in one turn into one call, with blocks on its diagonal.

Towers for images of any size split their queries, keys and values into pictures, frames or windows, and call attention
once per chunk. The joined call has the module's own order of positions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import block
from attention_viz.operation.terms import same_terms
from attention_viz.recording.call_rows import WindowOrder, apart
from attention_viz.recording.hooks import HOOKS, as_function

_CUT = ("query", "key", "value")


class TurnCounter:
    """Counts modules' turns in one run; each module is hooked at its first call, or before the run."""

    def __init__(self) -> None:
        """Begin without hooks."""
        self._counts = dict[nn.Module, int]()
        self._handles = list[Any]()

    def begin(self, module: nn.Module) -> None:
        """Count a turn."""
        self._counts[module] = self._counts.get(module, 0) + 1

    def of(self, module: nn.Module, begin: Any) -> int:
        """Return a module's turn; `begin` is the hook that counts later ones."""
        if module not in self._counts:
            self.begin(module)
            with HOOKS:
                self._handles.append(module.register_forward_pre_hook(as_function(begin)))
        return self._counts[module]

    def unhook(self) -> None:
        """Remove the hooks."""
        with HOOKS:
            for handle in self._handles:
                handle.remove()


class CallPart(NamedTuple):
    """A part of a recorded call that the model computes alone: its positions, `stop` excluded; all by default.

    If the model computes it as several `rows` of a batch, the heads of each row follow those of the one before; `order`
    is that of rows that are windows.
    """

    number: int
    start: int = 0
    stop: int | None = None
    rows: int = 1
    order: WindowOrder | None = None

    @property
    def in_rows(self) -> bool:
        """Whether the model computes it as rows of a batch."""
        return self.rows > 1 or self.order is not None

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole call, position by position."""
        return self.stop is None and not self.in_rows

    def of(self, attention: Attention) -> Attention:
        """Return the chunk's part of its call."""
        if self.in_rows:
            return apart(attention, self.rows, self.order)
        return attention if self.stop is None else block(attention, self.start, self.stop)


def chunks_of(
    lengths: Sequence[Sequence[int]], rows: Sequence[int], orders: Sequence[WindowOrder | None]
) -> list[CallPart]:
    """Return all calls' chunks in the model's order; calls of one chunk have no lengths."""
    found = list[CallPart]()
    for number, several in enumerate(lengths):
        starts = [sum(several[:before]) for before in range(len(several))]
        parts = [CallPart(number, start, start + length) for start, length in zip(starts, several, strict=True)]
        found += parts or [CallPart(number, rows=rows[number], order=orders[number])]
    return found


def continues(one: Attention, other: Attention) -> bool:
    """Return whether a call's positions follow another's: both are slices of the same tensors, without a mask."""
    if any(call.allowed is not None or call.bias is not None or call.query.ndim != 4 for call in (one, other)):
        return False
    slices = all(_follows(getattr(one, name), getattr(other, name)) for name in _CUT)
    return slices and same_terms(one, other, lambda this, that: this is that, *_CUT)


def _follows(one: Tensor, other: Tensor) -> bool:
    shapes = [(*call.shape[:-2], call.shape[-1], *call.stride()) for call in (one, other)]
    start = one.storage_offset() + one.shape[-2] * one.stride(-2)
    same = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    return same and shapes[0] == shapes[1] and other.storage_offset() == start


def joined(chunks: Sequence[Attention], allowed: Bool[Tensor, "1 1 query key"]) -> Attention:
    """Join chunks' positions in their order; `allowed` has their blocks."""
    terms = {name: torch.cat([getattr(one, name) for one in chunks], dim=-2) for name in _CUT}
    return replace(chunks[0], allowed=allowed, **terms)


def blocks(lengths: Sequence[int], device: torch.device) -> Bool[Tensor, "1 1 query key"]:
    """Return the mask with blocks of these lengths on its diagonal."""
    of_chunk = torch.arange(len(lengths), device=device).repeat_interleave(torch.tensor(lengths, device=device))
    return (of_chunk[:, None] == of_chunk)[None, None]
