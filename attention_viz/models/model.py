"""A transformers model whose attention is ours while we record: text in, `Trace` out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import Reader
from attention_viz.inputs.text import InputRow, Wording, count_tokens, read
from attention_viz.inputs.token_of import candidates, probability
from attention_viz.models import media, texts
from attention_viz.models.parts import ModelParts
from attention_viz.operation.modules import Projection
from attention_viz.protocol.facts import ModelFacts
from attention_viz.protocol.model import Model
from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.batches.batched import traces_together
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.runner import Runner
from attention_viz.trace.ahead import Progress
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    import pandas
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["AttentionModel"]


@dataclass(frozen=True, eq=False, repr=False)
class AttentionModel(Model):
    """A model whose attention can be seen: made by `load` or `wrap`, safe to use from several threads."""

    _parts: ModelParts

    @classmethod
    def of(
        cls,
        hf_model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None",
        provenance: Provenance,
        reader: Reader | None = None,
        why_alone: str = "",
    ) -> "AttentionModel":
        """Probe a model and wrap it, with what is known of where it comes from."""
        return cls(replace(ModelParts.probed(hf_model, tokenizer, provenance, reader), why_alone=why_alone))

    def __repr__(self) -> str:
        """One line: the name, each stream's layers and heads, how much it reads at once, and what attends beside."""
        sizes = ", ".join(
            f"{stream}: {self.layers[stream].counted} × {'/'.join(map(str, sorted(set(heads))))} heads"
            for stream, heads in self.heads.items()
        )
        reads = "" if self.limit is None else f", reads {self.limit:,} tokens"
        beside = f", left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"AttentionModel({self.name!r}, {sizes}{reads}{beside})"

    @property
    def name(self) -> str:
        """The name it was loaded by."""
        return self._parts.name

    @property
    def limit(self) -> int | None:
        """How many tokens it can read at once; None if unknown."""
        return self._parts.inputs.limit

    @property
    def facts(self) -> ModelFacts:
        """What it is and can do."""
        return self._parts.facts

    @property
    def hf_model(self) -> "PreTrainedModel":
        """The transformers model itself."""
        return self._parts.inputs.model

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase | None":
        """Its tokenizer, if it has one."""
        return self._parts.tokenizer

    @property
    def reader(self) -> Reader | None:
        """What turns an image or a sound into tensors; None for a model of text."""
        return self._parts.reader

    @property
    def why_alone(self) -> str:
        """Why it can't read a picture beside the text; empty if nothing prevents it."""
        return self._parts.why_alone

    @property
    def origin(self) -> Provenance:
        """Where the model comes from: the provenance of its traces, without a text."""
        return self._parts.provenance

    @property
    def anatomy(self) -> Anatomy:
        """What a trial run showed of it when it was wrapped."""
        return self._parts.tracer.anatomy

    @property
    def runner(self) -> Runner:
        """Every one of its forwards goes through this."""
        return self._parts.tracer.runner

    @property
    def nbytes(self) -> int:
        """How many bytes its parameters and buffers take in memory."""
        tensors = (*self.hf_model.parameters(), *self.hf_model.buffers())
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def mask_id(self) -> int | None:
        """The id of the token whose word an encoder predicts; None if it has none."""
        return getattr(self.tokenizer, "mask_token_id", None)

    @property
    def heads(self) -> Mapping[str, tuple[int, ...]]:
        """For each stream, the number of heads of each attention layer, in the order of `layer_numbers`."""
        return self.facts.heads

    @property
    def fills_up(self) -> bool:
        """Whether texts of different length can be run in one pass: the model has one stream and takes a mask."""
        return len(self.anatomy.layers) == 1 and "attention_mask" in self.runner.named

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """Return the learned matrices around one layer's attention, by "query", "key", "value" and "output".

        If a model does something else between a matrix and its attention, that matrix is left out.

        Raises:
            ShapeError: there is no such layer or stream, or no stream was named and there are several.
        """
        return self._parts.tracer.projections(layer, stream)

    def behind(self, door: AbstractContextManager[object]) -> "AttentionModel":
        """Return the model with a door, a reentrant context manager, that each forward enters, later ones too."""
        tracer = replace(self._parts.tracer, runner=replace(self.runner, door=AsWritten(door)))
        return AttentionModel(replace(self._parts, tracer=tracer))

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of these ids as the tokenizer writes them; the ids as text without a tokenizer."""
        return label_ids(self.tokenizer, ids).labels

    def tokens_of(self, text: str) -> Tokens:
        """Return a text's tokens, special ones included.

        Raises:
            UnusableText: there is no tokenizer, it leaves nothing of the text, or the text isn't a string.
        """
        return read(self.name, self.tokenizer, text).tokens

    def count_tokens(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        """Count the tokens of a text, behind another sentence if there is one."""
        pair = (text, None) if before is None else (before, text)
        return count_tokens(self.name, self.tokenizer, *pair, Wording(special_tokens, chat))

    def trace(
        self,
        text: str | media.Thing,
        second_text: str | None = None,
        *,
        target: str | None = None,
        edits: Sequence[Edit] = (),
        layers: Sequence[int] | None = None,
        special_tokens: bool = True,
        chat: bool = False,
        picture: Picture | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        """Run a text, a picture or a sound through the model with our attention and keep what it computed.

        If it takes over ten seconds, it first says how much it will hold and take, then how far it is.

        Args:
            text: a text; or a `Picture`, a `Sound`, or tensors by name, if the model reads such.
            second_text: a second sentence, for encoders that read pairs.
            target: the text that an encoder–decoder should produce; by default the one it produces without the edits:
                each time the likeliest token that its generation settings allow. Refused by every other model.
            edits: changes made inside the model, such as `Allow`.
            layers: the numbers of the layers that are kept, in every stream that has them, under these; all by default.
            special_tokens: whether the tokenizer adds those that belong around a text, such as [CLS].
            chat: whether the text is put into the tokenizer's chat template, as a user's message to be answered.
            picture: the picture beside the text, for a model that reads both.
            progress: called after each layer with the share of the run that is done, from 0 to 1, in place of lines on
                standard error; an exception that it raises stops the run.

        Raises:
            UnusableText: nothing to read in it, no tokenizer to read it with, or a model that reads something else.
            UnusablePicture, UnusableSound: the model reads none, or can't read this one.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: a target for a model that has none.
            ShapeError: an edit that doesn't fit the text, or names a layer, head or stream that isn't there; or layers
                to keep that are none, named twice, or not there.
        """
        keep = self.anatomy.calls_of(layers)
        if picture is not None or not isinstance(text, str):
            return media.trace_media(self._parts, text, picture, second_text, target, edits, keep)
        media.check_reads_text(self._parts)
        wording = Wording(special_tokens, chat)
        return texts.trace_text(self._parts, text, second_text, target, edits, keep, wording, progress)

    def trace_ids(
        self,
        input_ids: Tensor | Sequence[int],
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | Sequence[int] | None = None,
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """Run token ids through the model with our attention and keep what it computed.

        Args:
            input_ids: one row, (1, n), or a list or tuple of its n whole numbers.
            attention_mask: (1, n), 1 for real positions and 0 for padding, on either side. Padded positions stay,
                labelled as padding; their keys get exactly 0. Without one the model is given ones, since some models
                take the token that pads for padding anywhere; `provenance.added` says so.
            decoder_input_ids: what the decoder of an encoder–decoder reads, (1, m) or a list of m, its start included;
                by default what the model generates. Refused by every other model.
            edits: changes made inside the model, such as `Allow`.

        Raises:
            ShapeError: more than one row, none, no whole numbers, or ids and mask of different shape.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: decoder ids for a model that has no use for them.
        """
        if decoder_input_ids is not None and not self.answers:
            raise UnsupportedModel(f"decoder_input_ids were given, and {self.name} is no encoder–decoder")
        media.check_reads_text(self._parts)
        return texts.trace_ids(self._parts, input_ids, attention_mask, decoder_input_ids, edits)

    def trace_padded(
        self,
        text: str,
        padding: int,
        *,
        edits: Sequence[Edit] = (),
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Run a text with `padding` positions after it, labelled as padding, which every position sees.

        Raises:
            UnsupportedModel: the tokenizer has no token to pad with.
            UnusableText: nothing to read in the text.
            TextTooLong: more tokens than the model has positions.
        """
        media.check_reads_text(self._parts)
        return texts.trace_padded(self._parts, text, padding, edits, Wording(special_tokens, chat))

    def trace_together(self, texts: Sequence[str], layers: Sequence[int] | None = None) -> list[Trace]:
        """Trace several texts in one pass, whose rows are filled up to the longest.

        Their numbers are those of single traces, but for the last digits: batches add in another order. They have no
        output, and nothing can be asked of the model through them.

        Args:
            texts: what to read.
            layers: as in `trace`.

        Raises:
            UnsupportedModel: the model doesn't run a batch as it runs its rows.
            UnusableText: nothing to read in one of them.
        """
        return self.traces_of([(text, read(self.name, self.tokenizer, text)) for text in texts], layers)

    def traces_of(self, texts: "Sequence[tuple[str, InputRow]]", layers: Sequence[int] | None = None) -> list[Trace]:
        """As `trace_together`, for texts that were tokenized before: each with its row of input."""
        filling = None if self.tokenizer is None else self.tokenizer.pad_token_id
        return traces_together(
            self._parts.tracer,
            [reading for _, reading in texts],
            [replace(self.origin, text=text) for text, _ in texts],
            self.anatomy.calls_of(layers),
            filling if isinstance(filling, int) else 0,
        )

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """Return the outputs of a trace's text under several lists of edits, from one batch; None if it has no batches.

        Args:
            before: a trace of this model without edits.
            tries: the lists of edits.
            only: the position whose output is wanted, one row each; all by default.

        Raises:
            ShapeError: an edit that doesn't fit the text, or names a layer, head or stream that isn't there.
        """
        return texts.run_batch(self._parts, before, tries, only)

    def repeated_random(self, tokens: int | None = None, seed: int = 0) -> Trace:
        """Run different random tokens twice, one copy after the other: the standard test of induction.

        Only attending to what followed a token in the first copy predicts the next one, which induction heads do. The
        metric `induction` of this trace is that test's score. Source: Olsson et al. 2022, "In-context Learning and
        Induction Heads", with more repetitions and without the most and least common tokens.

        Args:
            tokens: how many are repeated; 50 by default, fewer if the model knows or reads fewer.
            seed: which ones; the same seed gives the same tokens.

        Raises:
            UnsupportedModel: an encoder–decoder, whose decoder would read something else.
            ShapeError: fewer than 2 tokens, or more than the model knows or can read twice.
            UnusableText: the model knows fewer than 2 tokens that are words, or pieces of words.
        """
        return texts.repeated_random(self._parts, tokens, seed)

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

        The text is run once, and each token after it in a step with the cached keys; if a test shows that such steps
        differ from a run of the whole text, it runs whole each time. Ends early if the model is done or full.

        Args:
            text: what to read.
            tokens: how many tokens at most.
            evict: which keys are evicted from the cache, as `av.Evict()` says; by default none.
            special_tokens: as in `trace`.
            chat: as in `trace`.

        Raises:
            UnsupportedModel: the model is no decoder with a head that chooses words, or keys can't be evicted.
            UnusableText: nothing to read in the text.
            ShapeError: fewer tokens than 0 were asked for.
            TextTooLong: more tokens than the model has positions; raised when the first trace is asked for.
        """
        return texts.continue_text(self._parts, text, tokens, evict, Wording(special_tokens, chat))

    def extend(self, trace: Trace, tokens: int = 1, *, evict: Evict | None = None) -> Iterator[Trace]:
        """Continue a trace of this decoder as `generate` does: a trace a token more, then another.

        The keys and values that the trace holds are the cache.

        Args:
            trace: a run of this model without edits, or one that was grown with the same eviction.
            tokens: how many tokens at most.
            evict: as in `generate`.

        Raises:
            UnsupportedModel: the model is no decoder with a head that chooses words, keys can't be evicted, or the
                trace is another model's, has edits, keeps only some layers, was made of another trace, or was grown
                with another eviction.
            TraceError: the model has changed since the trace was made.
            ShapeError: fewer tokens than 0 were asked for.
        """
        return texts.extend_trace(self._parts, trace, tokens, evict)

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """Return the likeliest tokens at a position of a trace of this model: columns token, id, probability, written.

        For a decoder the token after the position; for an encoder the one behind a mask, so only there.

        Raises:
            UnsupportedModel: the model has no head that chooses tokens, or the trace is another's.
            ShapeError: there is no such position, it is padding, or fewer than 1 were asked for.
            UnusableText: an encoder was asked at a position without a mask.
        """
        self._check_own(trace)
        return candidates(self.anatomy.no_words, self.tokenizer, trace, position, count)

    def probability(self, trace: Trace, token: int | str, position: int = -1) -> float:
        """Return a token's probability at a position of this model's trace, from 0 to 1: the next, or a masked one.

        Args:
            trace: of this model; one from a file will do.
            token: its id or its text, such as " Mary".
            position: counted from the end if negative.

        Raises:
            UnsupportedModel: the model has no head that chooses tokens, or the trace is another's.
            ShapeError: there is no such position or id, or the position is padding.
            UnusableText: the text is no token, or several; or an encoder was asked at a position without a mask.
        """
        self._check_own(trace)
        return probability(self.anatomy.no_words, self.tokenizer, trace, token, position)

    def _check_own(self, trace: Trace) -> None:
        if trace.provenance.model != self.name:
            raise UnsupportedModel(f"a trace of {trace.provenance.model} was given; {self.name} knows only its own")
