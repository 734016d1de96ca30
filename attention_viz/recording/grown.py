"""A decoder's run in steps, put together as one: the text read at once, then a token at a time with the keys kept.

A step reads one token. Its query meets the keys and values that the steps before it left in the cache, so that what a
step recorded is one more row, one more key and one more value of every layer. Rows that were there stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import same_terms
from attention_viz.recording.recorder import Call
from attention_viz.recording.runner import Pass

__all__ = ["Grown", "cache_number"]

# The terms that get longer with every step.
_LONGER = ("query", "key", "value", "allowed")


class Grown:
    """What a decoder computed for a text and for each token after it.

    Room for all rows is taken at once; what is handed out are views of the rows there are, which no later step touches.

    Attributes:
        count: how many tokens it has read.
    """

    def __init__(self, start: Pass, room: int, *, each_head: bool = False) -> None:
        """Begin with a recorded run of a text."""
        self._start, self._each_head = start, each_head
        self.count = len(start.output)
        self._size = self.count + room
        self._output = self._longer(start.output[:], 0)
        self._terms = [
            {name: self._longer(getattr(call.attention, name), 1) for name in _LONGER[:3]} for call in start.calls
        ]
        for call in start.calls:
            if call.attention.bias is not None or call.attention.shape[1:] != (self.count, self.count):
                raise UnsupportedModel(f"{type(call.module).__name__} has a term that grows otherwise than by rows")
        # By what tells apart the masks of layers, in the text and in the step: layers that share one go on sharing it.
        self._masks: dict[object, Tensor] = {}
        self._mask_of: list[Tensor] = []

    def add(self, step: Pass, kept: Sequence[int]) -> None:
        """Take in the run of one more token."""
        if len(step.calls) != len(self._start.calls):
            raise UnsupportedModel(f"a step made {len(step.calls)} attention calls, the text {len(self._start.calls)}")
        columns = torch.tensor([*kept, self.count], device=self._output.device)
        for number, (first, call) in enumerate(zip(self._start.calls, step.calls, strict=True)):
            self._check(first, call, len(columns))
            for name, axis_end in (("query", 0), ("key", -1), ("value", -1)):
                self._terms[number][name][:, self.count] = getattr(call.attention, name)[:, axis_end]
        if not self._mask_of:
            self._mask_of = [
                self._mask(first.attention.allowed, call.attention.allowed)
                for first, call in zip(self._start.calls, step.calls, strict=True)
            ]
        for mask, call in zip(self._mask_of, step.calls, strict=True):
            row = call.attention.allowed
            mask[:, self.count, columns] = True if row is None else row[..., 0, :]
        self._output[self.count] = step.output[-1]
        self.count += 1

    @property
    def record(self) -> Pass:
        """All of it as one run's record."""
        calls = tuple(replace(call, attention=self._attention(at)) for at, call in enumerate(self._start.calls))
        return Pass(self._output[: self.count], calls, self._start.modules, self._start.numbers)

    @property
    def allowed(self) -> Tensor:
        """Who looked at whom in the first layer, (query, key)."""
        return self._mask_of[0][0, : self.count, : self.count]

    def cached(self, kept: Sequence[int] | None = None) -> Mapping[int, tuple[Tensor, Tensor]]:
        """The keys and values so far by the number that each layer has in a cache, each (1, head, key, width)."""
        found: dict[int, tuple[Tensor, Tensor]] = {}
        for call, terms in zip(self._start.calls, self._terms, strict=True):
            pair = [terms[name][None, :, : self.count] for name in ("key", "value")]
            if kept is not None:
                pair = [one[:, :, list(kept)] for one in pair]
            found[cache_number(call)] = (pair[0], pair[1])
        return found

    def _attention(self, number: int) -> Attention:
        views: dict[str, Tensor] = {name: one[:, : self.count] for name, one in self._terms[number].items()}
        if self._mask_of:
            mask = self._mask_of[number][:, : self.count, : self.count]
            views["allowed"] = mask.expand(len(views["query"]), -1, -1) if self._each_head else mask
        return replace(self._start.calls[number].attention, **cast("Any", views))

    def _mask(self, first: Tensor | None, row: Tensor | None) -> Tensor:
        key = (_memory(first), _memory(row))
        if key not in self._masks:
            start = torch.ones(1, 1, 1, dtype=torch.bool) if first is None else first
            start = start[:1] if self._each_head else start  # an eviction is the same in all of them
            start = start.expand(-1, self.count, self.count)
            mask = start.new_zeros(len(start), self._size, self._size, device=self._output.device)
            mask[:, : self.count, : self.count] = start
            self._masks[key] = mask
        return self._masks[key]

    def _longer(self, tensor: Tensor, axis: int) -> Tensor:
        shape = list(tensor.shape)
        shape[axis] = self._size
        buffer = tensor.new_zeros(shape)
        buffer.narrow(axis, 0, self.count).copy_(tensor)
        return buffer

    def _check(self, first: Call, call: Call, keys: int) -> None:
        same = same_terms(first.attention, call.attention, torch.equal, *_LONGER)
        heads = first.attention.shape[0]
        if first.module is not call.module or not same or call.attention.shape != (heads, 1, keys):
            raise UnsupportedModel(
                f"{type(call.module).__name__} attends over {call.attention.shape} (head, query, key) in a step with "
                f"{keys} keys, or with other terms than in the text"
            )


def cache_number(call: Call) -> int:
    """The number that a call's layer has in a cache."""
    number = getattr(call.module, "layer_idx", None)
    if not isinstance(number, int):
        raise UnsupportedModel(f"{type(call.module).__name__} doesn't say which layer of a cache is its own")
    return number


def _memory(tensor: Tensor | None) -> object:
    return None if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())
