"""How a decoder goes on with a text."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.check import Inputs
from attention_viz.inputs.labelling import with_doubled
from attention_viz.inputs.text import InputRow, Wording, read
from attention_viz.models.continuation import Growing
from attention_viz.protocol.facts import ModelFacts
from attention_viz.recording.stepping import Stepping
from attention_viz.recording.tracer import Tracer
from attention_viz.trace.once import once
from attention_viz.trace.shown.kind import InputKind
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Continuing"]


class Continuing(ABC):
    """A model that goes on with a text, where it is a decoder that chooses words."""

    name: str
    limit: int | None
    facts: ModelFacts
    tokenizer: "PreTrainedTokenizerBase | None"
    _tracer: Tracer
    _inputs: Inputs
    _provenance: Provenance

    @abstractmethod
    def _trace(self, reading: InputRow, edits: Sequence[Edit], provenance: Provenance) -> Trace:
        """The trace of a row of input."""

    def generate(
        self,
        text: str,
        tokens: int = 20,
        *,
        evict: Evict | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Iterator[Trace]:
        """Let a decoder continue a text, always by the likeliest token: a trace of the text, then one a token more.

        The text is run once, and each token after it in a step of its own, whose query meets the keys that are in the
        cache. Ends early where the model is done, or full. Where a model's steps aren't the same as a run of the whole
        text, which is found out once, the whole text is run for each token.

        Args:
            text: what to read.
            tokens: how many tokens at most.
            evict: which keys are thrown away from the cache, as `av.Evict()` says; by default none.
            special_tokens: as in `trace`.
            chat: as in `trace`.

        Raises:
            UnsupportedModel: the model is no decoder with a head that chooses words, or keys can't be thrown away.
            UnusableText: nothing to read in the text.
            ShapeError: fewer tokens than 0 were asked for.
            TextTooLong: more tokens than the model has positions; said when the first trace is asked for.
        """
        self._check_goes_on(tokens, evict)
        reading = read(self.name, self.tokenizer, text, None, Wording(special_tokens, chat), self.limit)
        provenance = replace(self._provenance, text=text, special_tokens=special_tokens, chat=chat)
        provenance = replace(provenance, notes=with_doubled(provenance.notes, reading.tokens))
        return self._generate(reading, tokens, evict, provenance)

    def _generate(self, reading: InputRow, tokens: int, evict: Evict | None, provenance: Provenance) -> Iterator[Trace]:
        self._inputs.check_tokens(reading.tokens)
        first = self._trace(reading, (), provenance)
        yield first
        yield from self._growing.traces(first, tokens, evict)

    def extend(self, trace: Trace, tokens: int = 1, *, evict: Evict | None = None) -> Iterator[Trace]:
        """Go on from a trace of this decoder as `generate` does: a trace a token more, then another.

        The keys and values that the trace holds are the cache. A model that has changed since is refused, as far as its
        parameters and settings show it.

        Args:
            trace: a run of this model without edits, or one that was grown with the same eviction.
            tokens: how many tokens at most.
            evict: as in `generate`.

        Raises:
            UnsupportedModel: the model is no decoder with a head that chooses words, keys can't be thrown away, or the
                trace is another model's, has edits, keeps only some layers, was made of another trace, or was grown
                with another eviction.
            TraceError: the model has changed since the trace was made.
            ShapeError: fewer tokens than 0 were asked for.
        """
        self._check_goes_on(tokens, evict)
        self._growing.check_start(trace, evict)
        return self._growing.traces(trace, tokens, evict)

    def _check_goes_on(self, tokens: int, evict: Evict | None) -> None:
        if why := self._why_not:
            raise UnsupportedModel(f"{self.name} can't go on with a text: {why}")
        if type(tokens) is not int or tokens < 0:
            raise ShapeError(f"{tokens} more tokens were asked for; it has to be a whole number, 0 or more")
        self._growing.check(evict)

    @property
    def _why_not(self) -> str:
        """Why nothing can be gone on with; empty if it can."""
        facts = self.facts
        if facts.reads != InputKind.TEXT:
            beside = "av.wrap(model, processor.tokenizer) goes on with text alone"
            return f"it was wrapped to read {facts.reads.one}, and a next token is chosen after text alone; {beside}"
        if facts.is_encoder_decoder:
            return "it is an encoder–decoder, whose traces hold all that it says"
        if facts.streams != ("decoder",):
            return f"its attention is that of {' and '.join(facts.streams)}, which looks ahead; needed: a decoder"
        return self._tracer.anatomy.no_words

    @once
    def _growing(self) -> Growing:
        stepping = Stepping(self._tracer.runner, self._tracer.anatomy, self.limit)
        return Growing(self._tracer, self._inputs, stepping, self._provenance.sha256)
