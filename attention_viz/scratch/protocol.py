"""What every model here answers to, so that nobody has to ask which kind it is."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.operation.projection import Projection
from attention_viz.scratch.facts import ModelFacts
from attention_viz.trace.fitting import Fit
from attention_viz.trace.provenance import Fidelity
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["Model"]


@runtime_checkable
class Model(Protocol):
    """A model that reads text: a pretrained one (`AttentionModel`) or our own module (`Scratch`).

    What a kind of model can't do it refuses with an `UnsupportedModel` or `UnusableText` that says why.
    """

    @property
    def name(self) -> str:
        """What it is called, in messages and in its traces."""
        ...

    @property
    def limit(self) -> int | None:
        """How many tokens it can read at once; None where nothing says."""
        ...

    @property
    def facts(self) -> ModelFacts:
        """What it is and can do."""
        ...

    @property
    def nbytes(self) -> int:
        """How many bytes its parameters and buffers take in memory."""
        ...

    @property
    def mask_id(self) -> int | None:
        """The id of the token behind which an encoder guesses; None where there is none."""
        ...

    def behind(self, door: AbstractContextManager[object]) -> "Model":
        """The model itself, each forward of which enters a door first."""
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
        """Run a text through the model with our attention and keep what it computed, of some layers or of all."""
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
        """Run a text with so many positions of padding after it, labelled as padding, which every position sees."""
        ...

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """What a trace's text gives under each list of edits, from one batch; None where it takes single runs."""
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
        """Continue a text by the likeliest tokens: a trace of the text, then one a token more."""
        ...

    def extend(self, trace: Trace, tokens: int = 1, *, evict: Evict | None = None) -> Iterator[Trace]:
        """Go on from a trace of a run of its own: a trace a token more, then another."""
        ...

    def verify(self, text: str) -> Fidelity:
        """How far what our attention computes is from a reference, on this text."""
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
        """Which part of a text the model can read at once, and what would have to be cut."""
        ...

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """The learned matrices around one layer's attention, by "query", "key", "value" and "output"."""
        ...

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """The likeliest tokens at a position of a trace of this model: columns token, id, probability."""
        ...

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens of these ids, as its tokenizer writes them; the ids as text where there is no tokenizer."""
        ...
