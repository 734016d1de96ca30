"""Computes rows of weights by a family's eager function, in a run with another implementation.

Eager attention makes a whole layer's weights at once, but its function takes any queries: given some rows of a call, it
returns their weights alone.
"""

import contextlib
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from attention_viz.analysis.blocks import row_slices
from attention_viz.analysis.places import sample_of
from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.differences import Real, weights_difference
from attention_viz.recording.references.joined_outputs import JoinedOutputs
from attention_viz.recording.runner import Pass
from attention_viz.sources.huggingface import (
    ALL_MASK_ATTENTION_FUNCTIONS,
    AttentionInterface,
    AttentionMaskInterface,
    sdpa_attention_forward,
)

BY_ROWS = "attention_viz_by_rows"


@dataclass(frozen=True)
class _AttentionArguments:
    """A module's call of attention; terms are (batch, head, position, width)."""

    module: nn.Module
    terms: tuple[Tensor, Tensor, Tensor]
    mask: Tensor | None
    others: Mapping[str, Any]

    @property
    def queries(self) -> int:
        return self.terms[0].shape[-2]

    def compute(self, function: Callable[..., tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
        return function(self.module, *self.terms, self.mask, **self.others)

    def rows(self, rows: slice | Tensor) -> "_AttentionArguments":
        """Return the call for some queries: each term with one row per query is cut."""
        count = self.queries

        def cut(value: Any) -> Any:
            cuttable = isinstance(value, Tensor) and value.ndim > 2 and value.shape[-2] == count
            return value[..., rows, :] if cuttable else value

        query, key, value = self.terms
        others = {name: cut(one) for name, one in self.others.items()}
        return _AttentionArguments(self.module, (query[..., rows, :], key, value), cut(self.mask), others)


@dataclass(eq=False)
class EagerRows:
    """Compares rows of a twin's weights with ours.

    Attributes:
        original: the model's module by the twin's.
        count: rows per call; None for all, which then also compute the outputs.
    """

    parts: Sequence[tuple[CallPart, nn.Module]]
    calls: Mapping[int, Attention]
    original: Mapping[nn.Module, nn.Module]
    count: int | None
    real: Real
    behind: JoinedOutputs
    heard: int = 0
    error: float = 0.0

    @classmethod
    def of(cls, recorded: Pass, original: Mapping[nn.Module, nn.Module], count: int | None, real: Real) -> "EagerRows":
        """Compare with a recorded pass over the same text."""
        calls = dict(zip(recorded.numbers, (call.attention for call in recorded.calls), strict=True))
        parts = [(part, recorded.modules[part.number]) for part in recorded.parts]
        return cls(parts, calls, original, count, real, JoinedOutputs(recorded, original))

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Receive this thread's calls of twins set to `BY_ROWS`."""
        token = _listening.set(self)
        try:
            with self.behind.listening():
                yield
        finally:
            _listening.reset(token)

    @property
    def complete(self) -> bool:
        """Whether all recorded calls were heard."""
        return self.heard == len(self.parts)

    def hear(self, asked: _AttentionArguments) -> Tensor:
        """Return a call's output, (batch, query, head, d_v), and compare some rows of its weights."""
        index, self.heard = self.heard, self.heard + 1
        if index >= len(self.parts) or self.parts[index][1] is not self.original.get(asked.module):
            raise UnsupportedModel(f"{type(asked.module).__name__} makes a call that wasn't recorded")
        part, kept = self.parts[index][0], self.parts[index][0].number in self.calls
        self.behind.hear(part)
        if self.count is None:
            cells = self.calls[part.number].shape[0] * asked.terms[1].shape[-2] if kept else 1
            blocks = [torch.arange(asked.queries)[some] for some in row_slices(asked.queries, cells)]
            return torch.cat([self._compare(part, asked, rows) for rows in blocks], dim=1)
        if kept:
            self._compare(part, asked, torch.tensor(sample_of(range(asked.queries), self.count)))
        if asked.mask is None:  # where that stands for "looks everywhere", as it does in eager attention
            asked = _AttentionArguments(asked.module, asked.terms, None, {**asked.others, "is_causal": False})
        return asked.compute(sdpa_attention_forward)[0]

    def _compare(self, part: CallPart, asked: _AttentionArguments, rows: Tensor) -> Tensor:
        output, weights = asked.rows(rows.to(asked.terms[0].device)).compute(_eager(asked.module))
        if part.number in self.calls:
            if weights is None:
                raise UnsupportedModel(f"{type(asked.module).__name__} has an eager attention without weights")
            ours = part.of(self.calls[part.number]).rows(rows.tolist())
            real = self.real.of_call(part.number) if part.is_whole else None
            real = None if real is None or len(real) != asked.queries else [real[row] for row in rows.tolist()]
            self.error = max(self.error, weights_difference(ours, weights.flatten(0, 1), real))
        return output


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    function = vars(inspect.getmodule(inspect.unwrap(type(module).forward))).get("eager_attention_forward")
    if not callable(function):
        raise UnsupportedModel(f"{type(module).__name__} has no eager attention function of its own")
    return cast("Callable[..., tuple[Tensor, Tensor | None]]", function)


_listening: ContextVar[EagerRows | None] = ContextVar("listening", default=None)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, **others: Any
) -> tuple[Tensor, None]:
    """Compute attention for a twin in transformers; position first out."""
    listener = _listening.get()
    if listener is None:
        raise UnsupportedModel(f"{type(module).__name__} was switched to an attention that only compares")
    return listener.hear(_AttentionArguments(module, (query, key, value), attention_mask, others)), None


AttentionInterface.register(BY_ROWS, _attention)
AttentionMaskInterface.register(BY_ROWS, ALL_MASK_ATTENTION_FUNCTIONS["eager"])
