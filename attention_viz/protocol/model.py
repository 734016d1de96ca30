"""The common interface of all models."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.operation.modules import Projection
from attention_viz.protocol.facts import ModelFacts
from attention_viz.trace.fitting import Fit
from attention_viz.trace.provenance import Fidelity
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["Model"]


@runtime_checkable
class Model(Protocol):
    """A text model: pretrained (`AttentionModel`) or our own (`Scratch`).

    Raises `UnsupportedModel` or `UnusableText` for what its kind can't do.
    """

    @property
    def name(self) -> str:
        """Return its name for messages and traces."""
        ...

    @property
    def limit(self) -> int | None:
        """Return the token limit; None if unknown."""
        ...

    @property
    def facts(self) -> ModelFacts:
        """What it is and can do."""
        ...

    @property
    def nbytes(self) -> int:
        """Return parameters' and buffers' bytes."""
        ...

    @property
    def mask_id(self) -> int | None:
        """Return an encoder's mask token id, or None."""
        ...

    def behind(self, door: AbstractContextManager[object]) -> "Model":
        """Wrap the model so that each forward enters a door first."""
        ...

    def trace(
        self,
        text: str,
        second_text: str | None = None,
        *,
        target: str | None = None,
        edits: Sequence[Edit] = (),
        layers: Sequence[int] | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Trace a text in some or all layers."""
        ...

    def trace_padded(
        self,
        text: str,
        padding: int,
        *,
        edits: Sequence[Edit] = (),
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Trace a text with labelled padding, visible to every position."""
        ...

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """Run each list of edits in one batch; None if unsupported."""
        ...

    def generate(
        self,
        text: str,
        tokens: int = 20,
        *,
        evict: Evict | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Iterator[Trace]:
        """Continue greedily: a trace of the text, then one per token."""
        ...

    def extend(self, trace: Trace, tokens: int = 1, *, evict: Evict | None = None) -> Iterator[Trace]:
        """Continue an own run's trace, one trace per token."""
        ...

    def verify(self, text: str) -> Fidelity:
        """Measure the distance from a reference."""
        ...

    def fit(
        self,
        text: str,
        limit: int | None = None,
        *,
        before: str | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Fit:
        """Find the readable part of a text, and the cut."""
        ...

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """Return a layer's matrices by "query", "key", "value" and "output"."""
        ...

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """Rank tokens at a position: token, id, probability."""
        ...

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Write ids as tokens; as ids without a tokenizer."""
        ...
