"""The protocol that pretrained models and our own module satisfy."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.modules import Projection
from attention_viz.protocol.facts import ModelFacts
from attention_viz.protocol.fitting import Fit, fit_text
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.kind import InputKind
from attention_viz.trace.provenance import Fidelity
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas


class Model(ABC):
    """A text model: pretrained (`AttentionModel`) or our own (`Scratch`).

    Methods raise `UnsupportedModel` or `UnusableText` if a kind of model can't do what they are for.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in messages and traces."""

    @property
    @abstractmethod
    def limit(self) -> int | None:
        """The number of tokens it can read at once; None if unknown."""

    @property
    @abstractmethod
    def facts(self) -> ModelFacts:
        """Its properties."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes that its parameters and buffers take in memory."""

    @property
    @abstractmethod
    def mask_id(self) -> int | None:
        """The id of the token whose word an encoder predicts; None if it has none."""

    @abstractmethod
    def behind(self, door: AbstractContextManager[object]) -> "Model":
        """Return the model with a door that each forward enters first."""

    @abstractmethod
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

    @abstractmethod
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

    @abstractmethod
    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """Return a layer's matrices by "query", "key", "value" and "output"."""

    @abstractmethod
    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of ids; the ids as text without a tokenizer."""

    @abstractmethod
    def count_tokens(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        """Count the tokens of a text, after another sentence if there is one."""

    # Models that don't predict words keep these defaults.

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """Return the outputs under each list of edits from one batch; None if the model has no batches."""
        return None

    def generate(
        self,
        text: str,
        tokens: int = 20,
        *,
        sample: bool = False,
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stop: "str | int | Sequence[str | int]" = (),
        evict: Evict | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Iterator[Trace]:
        """Continue a text: a trace of it, then one per token.

        Raises:
            UnsupportedModel: the model predicts no words.
        """
        raise UnsupportedModel(f"{self.name} predicts no words, so it can't continue a text; use a decoder")

    def extend(
        self,
        trace: Trace,
        tokens: int = 1,
        *,
        sample: bool = False,
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stop: "str | int | Sequence[str | int]" = (),
        evict: Evict | None = None,
    ) -> Iterator[Trace]:
        """Continue a trace of this model, one trace per token.

        Raises:
            UnsupportedModel: the model predicts no words.
        """
        raise UnsupportedModel(f"{self.name} predicts no words, so it can't continue a trace; use a decoder")

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """Return the likeliest tokens at a position: columns token, id, probability, written.

        Raises:
            UnsupportedModel: the model predicts no words.
        """
        raise UnsupportedModel(f"{self.name} has no unembedding; use a model that predicts tokens")

    def chances(self, trace: Trace, start: int | None = None) -> "pandas.DataFrame":
        """Return each token's probability and rank: columns position, token, id, probability, rank, written.

        Raises:
            UnsupportedModel: the model predicts no words.
        """
        raise UnsupportedModel(f"{self.name} has no unembedding; use a model that predicts tokens")

    # Every model has these.

    def verify(self, text: str) -> Fidelity:
        """Return the difference between the model's output with our attention and without, on this text."""
        return self.trace(text).fidelity

    def fit(
        self,
        text: str,
        limit: int | None = None,
        *,
        before: str | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Fit:
        """Return the part of a text that the model can read at once, and the rest.

        Args:
            text: the text to read.
            limit: a lower limit than the model's own, in tokens; words for our own module.
            before: if `text` is a second sentence, the first, which is read whole.
            special_tokens: as in `trace`.
            chat: as in `trace`.

        Raises:
            UnusableText: no tokenizer, or another sentence or a chat template for our own module.
        """

        def count(part: str) -> int:
            return self.count_tokens(part, before, special_tokens=special_tokens, chat=chat)

        bounds = [bound for bound in (limit, self.limit) if bound is not None]
        return fit_text(text, count, min(bounds, default=None))

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention its traces have.

        ("encoder",) if tokens see the whole text, ("decoder",) if they see only earlier ones, ("encoder",
        "decoder", "cross") if it reads one text and writes another.
        """
        return self.facts.streams

    @property
    def stream(self) -> str:
        """The first of its streams; most models have only one."""
        return self.streams[0]

    @property
    def answers(self) -> bool:
        """Whether it is an encoder–decoder."""
        return self.facts.is_encoder_decoder

    @property
    def predicts(self) -> bool:
        """Whether its output scores each token, as the next one or the masked one."""
        return self.facts.predicts

    @property
    def reads(self) -> InputKind:
        """Its input: "text", "picture", "sound", or "tensors" with the names in its example."""
        return self.facts.reads

    @property
    def layer_count(self) -> int:
        """The number of attention layers in its first stream."""
        return self.facts.layer_count(self.stream)

    def layer_numbers(self, stream: str | None = None) -> tuple[int, ...]:
        """Return the model's own numbers of a stream's attention layers, rising, as in traces and edits.

        Args:
            stream: its name; None for the only one.

        Raises:
            ShapeError: the stream doesn't exist, or the model has several and none was named.
        """
        if stream not in self.streams and (stream is not None or len(self.streams) > 1):
            problem = "the model has several streams" if stream is None else f"unknown stream {stream!r}"
            raise ShapeError(f"{problem}; choose one of {', '.join(self.streams)}")
        return tuple(self.facts.layer_numbers(stream))

    @property
    def layers(self) -> Mapping[str, KeptLayers]:
        """For each stream, the numbers of the layers with attention and of those without."""
        without = self.facts.without
        return {one: KeptLayers.all_of(self.layer_numbers(one), without.get(one, ())) for one in self.streams}

    @property
    def layers_without_attention(self) -> tuple[str, ...]:
        """The model's own numbers of the layers without attention, as in hybrids."""
        return self.facts.layers_without_attention

    @property
    def left_out(self) -> tuple[str, ...]:
        """The modules outside its streams that attend and aren't in its traces, such as a pooling head."""
        return self.facts.left_out
