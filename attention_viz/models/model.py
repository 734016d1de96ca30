"""Wrap a Transformers model so that its attention can be recorded: text in, `Trace` out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.edits.eviction import Evict
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import Reader
from attention_viz.inputs.media.sound import Sound
from attention_viz.inputs.media.video import Video
from attention_viz.inputs.text import InputRow, Wording, count_tokens, read
from attention_viz.models import media, texts
from attention_viz.models.continued_beside import continue_beside, extend_beside
from attention_viz.models.next_token import NextToken, Stop
from attention_viz.models.parts import ModelParts
from attention_viz.models.predicting import PredictingModel
from attention_viz.operation.modules import Projection
from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.batches.batched import traces_together
from attention_viz.trace.ahead import Progress
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["AttentionModel"]


@dataclass(frozen=True, eq=False, repr=False)
class AttentionModel(PredictingModel):
    """A model whose attention can be recorded: made by `load` or `wrap`, safe to use from several threads."""

    @classmethod
    def of(
        cls,
        hf_model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None",
        provenance: Provenance,
        reader: Reader | None = None,
        why_alone: str = "",
    ) -> "AttentionModel":
        """Probe a model and wrap it with its provenance."""
        parts = ModelParts.probed(hf_model, tokenizer, provenance, reader)
        return cls(replace(parts, facts=replace(parts.facts, why_alone=why_alone)))

    def __repr__(self) -> str:
        """Return the name, each stream's layers and heads, the token limit and attention that isn't recorded."""
        sizes = ", ".join(
            f"{stream}: {self.layers[stream].counted} × {'/'.join(map(str, sorted(set(heads))))} heads"
            for stream, heads in self.heads.items()
        )
        reads = "" if self.limit is None else f", reads {self.limit:,} tokens"
        beside = f", left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"AttentionModel({self.name!r}, {sizes}{reads}{beside})"

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """Return one layer's learned matrices by "query", "key", "value" and "output".

        A matrix is left out if the model does something else between it and its attention.

        Raises:
            ShapeError: the layer or stream doesn't exist, or the stream is missing and there are several.
        """
        return self._parts.tracer.projections(layer, stream)

    def behind(self, door: AbstractContextManager[object]) -> "AttentionModel":
        """Return the model with a reentrant context manager that every forward pass enters."""
        tracer = replace(self._parts.tracer, runner=replace(self.runner, door=AsWritten(door)))
        return AttentionModel(replace(self._parts, tracer=tracer))

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of these ids as the tokenizer writes them; without a tokenizer, the ids as text."""
        return label_ids(self.tokenizer, ids).labels

    def tokens_of(self, text: str) -> Tokens:
        """Return a text's tokens, special ones included.

        Raises:
            UnusableText: the model has no tokenizer, it leaves nothing of the text, or the text isn't a string.
        """
        return read(self.name, self.tokenizer, text).tokens

    def count_tokens(
        self, text: "str | media.Messages", before: str | None, *, special_tokens: bool, chat: bool
    ) -> int:
        """Count a text's tokens, after another sentence if there is one; or those of a chat's messages."""
        written, wording = texts.as_text(self._parts, text, Wording(special_tokens, chat))
        pair = (cast("str", written), None) if before is None else (before, cast("str", written))
        return count_tokens(self.name, self.tokenizer, *pair, wording)

    def trace(
        self,
        text: "str | media.Messages | media.Thing",
        second_text: str | None = None,
        *,
        target: str | None = None,
        edits: Sequence[Edit] = (),
        layers: Sequence[int] | None = None,
        special_tokens: bool = True,
        chat: bool = False,
        heads: Sequence[int] | None = None,
        queries: int | None = None,
        picture: Picture | None = None,
        pictures: Sequence[Picture] | None = None,
        video: Video | None = None,
        sound: Sound | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        """Run a text, an image or audio through the model and record its attention.

        If it takes over ten seconds, it prints the needed memory and time first, then its progress.

        Args:
            text: a text; a `Picture`, a `Sound`, or tensors by name, if the model reads such; or a chat's messages,
                {"role": …, "content": …} (see `Trace.segments`). With images, a content may be a list of {"type":
                "text", "text": …} and {"type": "image", "image": a Picture}.
            second_text: a second sentence, for encoders that read pairs.
            target: the text that an encoder–decoder should generate. By default it is the model's own output without
                the edits: at each step the likeliest token that its generation settings allow. Other models refuse it.
            edits: changes made inside the model, such as `Allow`.
            layers: numbers of the layers to keep, in every stream that has them; None for all.
            heads: numbers of the heads to keep, in every kept layer; None for all. This returns a `TracePart`.
            queries: how many of the last rows to keep; None for all. This returns a `TracePart`, too.
            special_tokens: whether the tokenizer adds its special tokens, such as [CLS]; False only for texts alone.
            chat: whether to put the text into the tokenizer's chat template, as a user's message to be answered.
            picture: the image beside the text, for a model that reads both.
            pictures: several images beside the text, in the order of their placeholders.
            video: the video beside the text, for a model that reads its frames.
            sound: the audio beside the text, for a model that reads both.
            progress: called after each layer with the finished share of the run, from 0 to 1, instead of printing to
                standard error; if it raises, the run stops.

        Raises:
            UnusableText: the text is empty, the model has no tokenizer, or it doesn't read text.
            UnusablePicture, UnusableSound, UnusableVideo: the model doesn't read images, audio or video, or can't read
                this one.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: a target for a model that has none.
            ShapeError: an edit doesn't fit the text or names a missing layer, head or stream; or `layers` or `heads` is
                empty, has duplicates or names a missing one; or `queries` is below 1 or more than the text's tokens.
        """
        keep, wording = self.anatomy.calls_of(layers), Wording(special_tokens, chat)
        text, wording = texts.as_text(self._parts, text, wording)
        cells = self._cells(heads, queries, keep)
        if any(one is not None for one in (picture, pictures, video, sound)) or not isinstance(text, str):
            media.check_keeps_all(self.name, cells)
            beside = media.one_or_several(picture, pictures, video, sound)
            return media.trace_media(self._parts, text, beside, second_text, target, edits, keep, wording, progress)
        media.check_reads_text(self._parts)
        return texts.trace_text(self._parts, text, second_text, target, edits, keep, wording, progress, cells)

    def trace_ids(
        self,
        input_ids: Tensor | Sequence[int],
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | Sequence[int] | None = None,
        edits: Sequence[Edit] = (),
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        queries: int | None = None,
        **tensors: Tensor,
    ) -> Trace:
        """Run token ids through the model and record its attention.

        Args:
            input_ids: one row, (1, n), or a list or tuple of n integers.
            attention_mask: (1, n), 1 for real positions and 0 for padding, on either side. Padding stays in the trace,
                labelled as such; its keys get exactly 0. None passes ones to the model, because some models treat the
                padding token as padding anywhere; `provenance.added` notes it.
            decoder_input_ids: input of an encoder–decoder's decoder, (1, m) or a list of m, with its start token; None
                for the model's own output. Other models refuse it.
            edits: changes made inside the model, such as `Allow`.
            layers: as in `trace`.
            heads: as in `trace`.
            queries: as in `trace`.
            tensors: for a model that reads text with images, its processor's other tensors by name, such as
                `pixel_values`: `model.trace_ids(**processor(text=…, images=…, return_tensors="pt"))`.

        Raises:
            ShapeError: not exactly one row, no integers, ids and mask differ in shape, or the model takes no tensor of
                this name, with these numbers or with this shape.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: decoder ids for a model without an encoder and decoder.
        """
        if decoder_input_ids is not None and not self.answers:
            raise UnsupportedModel(f"{self.name} isn't an encoder–decoder; leave out decoder_input_ids")
        keep = self.anatomy.calls_of(layers)
        cells = self._cells(heads, queries, keep)
        if tensors:
            media.check_keeps_all(self.name, cells)
            named = {"input_ids": input_ids, "attention_mask": attention_mask, **tensors}
            return media.trace_tensors(self._parts, named, edits, keep)
        media.check_reads_text(self._parts)
        return texts.trace_ids(self._parts, input_ids, attention_mask, decoder_input_ids, edits, keep, cells)

    def trace_padded(
        self,
        text: str,
        padding: int,
        *,
        edits: Sequence[Edit] = (),
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Run a text with `padding` positions after it, labelled as padding, that every position can attend to.

        Raises:
            UnsupportedModel: the tokenizer has no padding token.
            UnusableText: the text is empty.
            TextTooLong: more tokens than the model has positions.
        """
        media.check_reads_text(self._parts)
        return texts.trace_padded(self._parts, text, padding, edits, Wording(special_tokens, chat))

    def trace_together(self, texts: Sequence[str], layers: Sequence[int] | None = None) -> list[Trace]:
        """Trace several texts in one pass, padded to the longest.

        The numbers equal those of single traces up to rounding, because batches add in another order. These traces have
        no output and no layers without a softmax, and the model can't be run again through them.

        Args:
            texts: the texts.
            layers: as in `trace`.

        Raises:
            UnsupportedModel: the model's batches differ from its single runs.
            UnusableText: a text is empty, or the model doesn't read text alone.
        """
        media.check_reads_text(self._parts)
        return self.traces_of([(text, read(self.name, self.tokenizer, text)) for text in texts], layers)

    def traces_of(self, texts: "Sequence[tuple[str, InputRow]]", layers: Sequence[int] | None = None) -> list[Trace]:
        """Trace tokenized texts as `trace_together` does, each with its input row."""
        filling = None if self.tokenizer is None else self.tokenizer.pad_token_id
        parts = self._parts.of_length(max((len(reading.tokens) for _, reading in texts), default=0))
        return traces_together(
            parts.tracer,
            [reading for _, reading in texts],
            [replace(self.origin, text=text) for text, _ in texts],
            self.anatomy.calls_of(layers),
            filling if isinstance(filling, int) else 0,
        )

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """Return a text's outputs under several lists of edits, from one batch; None if the model can't run batches.

        Args:
            before: a trace of this model without edits.
            tries: the lists of edits.
            only: the position whose output to return, one row each; None for all.

        Raises:
            ShapeError: an edit doesn't fit the text or names a missing layer, head or stream.
        """
        return texts.run_batch(self._parts, before, tries, only)

    def repeated_random(self, tokens: int | None = None, seed: int = 0) -> Trace:
        """Run different random tokens twice in a row: the standard test of induction.

        Only a head that attends to the token after the first copy's occurrence predicts the next token, as induction
        heads do. This trace's metric `induction` is the test's score. Source: Olsson et al. 2022, "In-context Learning
        and Induction Heads", with more repetitions and without the most and least common tokens.

        Args:
            tokens: number of tokens to repeat; None for 50, or fewer if the model knows or reads fewer.
            seed: the same seed gives the same tokens.

        Raises:
            UnsupportedModel: an encoder–decoder, whose decoder would read something else.
            ShapeError: fewer than 2 tokens, or more than the model knows or can read twice.
            UnusableText: the model doesn't read text alone, or knows fewer than 2 tokens that are words or subwords.
        """
        media.check_reads_text(self._parts)
        return texts.repeated_random(self._parts, tokens, seed)

    def generate(
        self,
        text: "str | media.Messages",
        tokens: int = 20,
        *,
        sample: bool = False,
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stop: Stop = (),
        evict: Evict | None = None,
        special_tokens: bool = True,
        chat: bool = False,
        picture: Picture | None = None,
        pictures: Sequence[Picture] | None = None,
        video: Video | None = None,
        sound: Sound | None = None,
    ) -> Iterator[Trace]:
        """Continue a text: yield a trace of the text, then one per new token, the likeliest or a random one.

        The text runs once; each new token runs as a step with the KV cache. If a test shows that steps differ from a
        whole run, the whole text runs each time. Generation ends early if the model ends the text or is full. With
        images, the whole runs each time, and placeholders for images are never generated. `provenance.decoding` says
        how the tokens were chosen.

        Args:
            text: the text to continue, or a chat's messages, as in `trace`. The model answers the last message; if that
                is the assistant's own, the model continues it.
            tokens: largest number of new tokens.
            sample: True for a random token at each step, by the model's probabilities; False for the likeliest.
            temperature: divides the logits before sampling; below 1 favours likely tokens.
            top_p: samples from the fewest likeliest tokens whose probabilities sum to at least this.
            seed: a whole number; the same seed gives the same tokens. None for a new one, which the provenance has.
            stop: a text, a token id, or a list of them. Generation ends after the token that completes one, in the
                generated text alone.
            evict: keys to evict from the KV cache, as an `av.Evict()`; None for none.
            special_tokens: as in `trace`.
            chat: as in `trace`.
            picture: as in `trace`.
            pictures: as in `trace`.
            video: as in `trace`.
            sound: as in `trace`.

        Raises:
            UnsupportedModel: the model isn't a decoder with an unembedding, or its keys can't be evicted.
            UnusableText: the text is empty.
            UnusablePicture, UnusableSound, UnusableVideo: the model doesn't read images, audio or video, or can't read
                this one.
            ShapeError: `tokens` is below 0, an option of sampling is out of range or comes without `sample`, or a stop
                isn't an id of the model.
            TextTooLong: more tokens than the model has positions; raised when you request the first trace.
        """
        following = NextToken.of(sample, temperature, top_p, seed, stop)
        text, wording = texts.as_text(self._parts, text, Wording(special_tokens, chat), continues=True)
        if self._reads_beside or any(one is not None for one in (picture, pictures, video, sound)):
            beside = media.one_or_several(picture, pictures, video, sound)
            return continue_beside(self._parts, text, beside, tokens, evict, following, wording)
        return texts.continue_text(self._parts, cast("str", text), tokens, evict, following, wording)

    def extend(
        self,
        trace: Trace,
        tokens: int = 1,
        *,
        sample: bool = False,
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int | None = None,
        stop: Stop = (),
        evict: Evict | None = None,
    ) -> Iterator[Trace]:
        """Continue a trace of this decoder as `generate` does: yield one trace per new token.

        The trace's keys and values are the KV cache.

        Args:
            trace: a run of this model without edits, or one grown with the same eviction.
            tokens: largest number of new tokens.
            sample: as in `generate`.
            temperature: as in `generate`.
            top_p: as in `generate`.
            seed: as in `generate`; None also takes the trace's own seed if its last token was sampled alike.
                The same seed gives the tokens of one longer `generate`.
            stop: as in `generate`.
            evict: as in `generate`.

        Raises:
            UnsupportedModel: the model isn't a decoder with an unembedding, its keys can't be evicted, or the trace is
                another model's, has edits, keeps only some layers, comes from another trace or has another eviction.
            TraceError: the model has changed since the trace was made.
            ShapeError: as in `generate`.
        """
        following = NextToken.of(sample, temperature, top_p, seed, stop)
        if self._reads_beside:
            return extend_beside(self._parts, trace, tokens, evict, following)
        return texts.extend_trace(self._parts, trace, tokens, evict, following)

    def _cells(self, heads: Sequence[int] | None, queries: int | None, keep: frozenset[int] | None) -> KeptCells | None:
        counts = [count for number, count in enumerate(self.anatomy.heads) if keep is None or number in keep]
        return KeptCells.of(heads, queries, counts)
