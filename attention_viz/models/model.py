"""A transformers model whose attention is ours while we look: text in, `Trace` out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.inputs.check import Inputs, checked_mask
from attention_viz.inputs.device import device_of
from attention_viz.inputs.labelling import with_doubled
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import Reader
from attention_viz.inputs.padding import padded
from attention_viz.inputs.text import InputRow, Wording, count_tokens, read, read_target, token_limit
from attention_viz.models.choosing import Choosing
from attention_viz.models.continuing import Continuing
from attention_viz.models.described import Described
from attention_viz.models.encoder_decoder import Answering
from attention_viz.models.repeating import Repeating
from attention_viz.models.showing import Showing, Thing
from attention_viz.models.together import Together
from attention_viz.operation.projection import Projection
from attention_viz.protocol.facts import ModelFacts
from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.batches.batched_edits import batch_outputs
from attention_viz.recording.layout.beside_laid_out import BesideLaidOut, laid_out_of
from attention_viz.recording.layout.laid_out import LaidOut
from attention_viz.recording.probe import probe
from attention_viz.recording.runner import Runner, versions
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.scratch.text_model import TextModel
from attention_viz.trace.ahead import Progress
from attention_viz.trace.rerun import attach, behind
from attention_viz.trace.shown.kind import InputKind
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["AttentionModel"]


@dataclass(frozen=True, eq=False, repr=False)
class AttentionModel(Continuing, Repeating, Together, Choosing, Described, Showing, TextModel):
    """A model whose attention can be seen: made by `load` or `wrap`, safe to use from several threads.

    Attributes:
        name: the name it was loaded by.
        limit: how many tokens it can read at once; None where nothing says.
        reader: what makes of a picture or a sound what it reads; None where it reads text.
        why_alone: what keeps it from reading a picture beside the text; "" where nothing was found that does.
    """

    name: str
    limit: int | None
    _tracer: Tracer
    _inputs: Inputs
    _provenance: Provenance
    reader: Reader | None = None
    _laid_out: LaidOut | BesideLaidOut | None = None
    why_alone: str = ""

    @classmethod
    def of(
        cls,
        hf_model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase | None",
        provenance: Provenance,
        reader: Reader | None = None,
    ) -> "AttentionModel":
        """Probe a model and wrap it, with what is known of where it comes from."""
        limit = token_limit(hf_model, tokenizer)
        name = provenance.model
        example = None if reader is None else reader.example()
        runner, anatomy = probe(Runner.of(hf_model), limit, None if example is None else example.tensors)
        laid_out = None if reader is None else laid_out_of(reader, runner, anatomy)
        tracer, inputs = Tracer(name, runner, anatomy, tokenizer), Inputs(name, hf_model, limit)
        facts = ModelFacts(
            anatomy.by_stream(anatomy.heads),
            predicts=not anatomy.no_words,
            has_chat_template=tokenizer is not None and bool(tokenizer.chat_template),
            adds_special_tokens=reader is None and tokenizer is not None and tokenizer.num_special_tokens_to_add() > 0,
            numbers={stream: kept.every for stream, kept in anatomy.layers.items() if not kept.counts},
            without=anatomy.without,
            left_out=anatomy.left_out,
            reads=InputKind.TEXT if reader is None else reader.kind,
        )
        dtype = str(hf_model.dtype).removeprefix("torch.")
        route = "interception" if runner.switch.plan.sites else "interface"
        provenance = replace(provenance, dtype=dtype, versions=versions(device_of(hf_model)), route=route)
        provenance = anatomy.described(provenance)
        known = (name, limit, tracer, inputs, provenance, reader, laid_out)
        return cls(*known, facts=facts, hf_model=hf_model, tokenizer=tokenizer)

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
    def runner(self) -> Runner:
        """What runs it: every one of its forwards."""
        return self._tracer.runner

    def behind(self, door: AbstractContextManager[object]) -> "AttentionModel":
        """The model itself, each forward of which enters a door first; so do those that its traces ask for later.

        Args:
            door: a context manager that may be entered again, and from several threads.
        """
        tracer = replace(self._tracer, runner=replace(self.runner, door=AsWritten(door)))
        return replace(self, _tracer=tracer)

    def trace(
        self,
        text: str | Thing,
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

        What takes over ten seconds says first how much it will hold and take, then on standard error how far it is.

        Args:
            text: what to read: a text; or a `Picture`, a `Sound`, or tensors by name, where the model reads such.
            second_text: a second sentence, for encoders that read pairs.
            target: the text that an encoder–decoder should produce; by default the one it produces without the edits:
                each time the likeliest token that its generation settings allow. Refused by every other model.
            edits: changes made inside the model, such as `Allow`.
            layers: the numbers of the layers that are kept, in every stream that has them, under these; all by default.
            special_tokens: whether the tokenizer adds those that belong around a text, such as [CLS].
            chat: whether the text is put into the tokenizer's chat template, as a user's message to be answered.
            picture: the picture beside the text, of a model that reads both.
            progress: told after each layer which share of the run is done, from 0 to 1, in place of lines on standard
                error; what it raises stops the run.

        Raises:
            UnusableText: nothing to read in it, no tokenizer to read it with, or a model that reads something else.
            UnusablePicture, UnusableSound: one for a model that reads none, or that it can't read.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: a target for a model that has none.
            ShapeError: an edit that doesn't fit the text, or names a layer, head or stream that isn't there; or layers
                to keep that are none, named twice, or not there.
        """
        keep = self._tracer.anatomy.calls_of(layers)
        if picture is not None or not isinstance(text, str):
            return self._trace_shown(text, picture, second_text, target, edits, keep)
        self._check_reads_text()
        if target is not None and not self.answers:
            raise UnsupportedModel(
                f"a target was given, and {self.name} is no encoder–decoder: its only stream is the {self.stream}"
            )
        second_text = second_text if not isinstance(second_text, str) or second_text.strip() else None
        if second_text is not None and self.streams != ("encoder",):
            raise UnusableText(
                f"a second sentence was given, and {self.name} reads one text only, as every "
                f"{'encoder–decoder' if self.answers else 'decoder'}"
            )
        reading = read(self.name, self.tokenizer, text, second_text, Wording(special_tokens, chat), self.limit)
        self._inputs.check_tokens(reading.tokens)
        provenance = replace(self._provenance, text=text, second_text=second_text, special_tokens=special_tokens)
        provenance = replace(provenance, chat=chat, notes=with_doubled(provenance.notes, reading.tokens))
        if self.answers:
            produced = None if target is None else read_target(self.name, self.tokenizer, target)
            return self._answering.trace(reading, produced, edits, replace(provenance, target=target), keep, progress)
        return self._trace(reading, edits, provenance, keep, progress)

    def trace_padded(
        self,
        text: str,
        padding: int,
        *,
        edits: Sequence[Edit] = (),
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Run a text with so many positions of padding after it, labelled as padding, which every position sees.

        Raises:
            UnsupportedModel: the tokenizer has no token to pad with.
            UnusableText: nothing to read in the text.
            TextTooLong: more tokens than the model has positions.
        """
        ids, tokens = padded(self.name, self.tokenizer, text, padding, Wording(special_tokens, chat))
        # Gradients can't be asked of it: what the model says doesn't count padding, and the run doesn't know of any.
        return self.trace_ids(ids, edits=edits).derived(queries={self.stream: tokens}, keys={self.stream: tokens})

    def run_batch(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None) -> list[Tensor] | None:
        """The outputs of a trace's text under several lists of edits, from one batch; None where it takes single runs.

        With `only`, of that position alone: one row each.

        Raises:
            ShapeError: an edit that doesn't fit the text, or names a layer, head or stream that isn't there.
        """
        if self.answers or self.reader is not None:
            return None
        origin = before.provenance
        if origin.generated:
            return self._run_grown(before, tries, only)
        wording = Wording(origin.special_tokens, origin.chat)
        reading = read(self.name, self.tokenizer, origin.text or "", origin.second_text, wording)
        return batch_outputs(self._tracer, reading, before, tries, only)

    def _run_grown(self, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None) -> list[Tensor]:
        """The same of a text with the tokens that a decoder went on by: they are read as its ids."""
        ids = torch.tensor([before.query_tokens().numbers])
        reading = InputRow.of_ids(ids, torch.ones_like(ids), self.tokenizer)
        found = batch_outputs(self._tracer, reading, before, tries, only)
        if found is None:
            alone = [self.trace_ids(ids, edits=edits).output for edits in tries]
            found = alone if only is None else [one[only : only + 1] for one in alone]
        return found

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
                take the token that pads for padding wherever it stands; `provenance.added` says so.
            decoder_input_ids: what the decoder of an encoder–decoder reads, (1, m) or a list of m, its start included;
                by default what the model says of its own accord. Refused by every other model.
            edits: changes made inside the model, such as `Allow`.

        Raises:
            ShapeError: more than one row, none, no whole numbers, or ids and mask of different shape.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: decoder ids for a model that has no use for them.
        """
        if decoder_input_ids is not None and not self.answers:
            raise UnsupportedModel(f"decoder_input_ids were given, and {self.name} is no encoder–decoder")
        self._check_reads_text()
        row = self._inputs.row(input_ids)
        reading = InputRow.of_ids(row, checked_mask(row, attention_mask), self.tokenizer)
        added = ("attention_mask",) if attention_mask is None and "attention_mask" in self.runner.named else ()
        provenance = replace(self._provenance, added=added)
        if not self.answers:
            return self._trace(reading, edits, provenance)
        if decoder_input_ids is None:
            return self._answering.trace(reading, None, edits, provenance)
        return self._answering.trace_ids(reading, decoder_input_ids, edits, provenance)

    def _longest(self) -> int | None:
        return self.limit

    def _count(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        pair = (text, None) if before is None else (before, text)
        return count_tokens(self.name, self.tokenizer, *pair, Wording(special_tokens, chat))

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        """The learned matrices around one layer's attention, by "query", "key", "value" and "output".

        Where a model does something else between a matrix and its attention, that matrix is left out.

        Raises:
            ShapeError: there is no such layer or stream, or no stream was named where there are several.
        """
        return self._tracer.projections(layer, stream)

    def _trace(
        self,
        reading: InputRow,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        axes, inputs = TokenAxes.of_one(self.stream, reading.tokens), self._tracer.runner.inputs(reading.tensors)
        trace = self._tracer.trace(inputs, lambda _recorded: axes, edits, provenance, keep, progress)
        return attach(trace, replace(behind(trace), repeat=self.repeated_random))

    @property
    def _answering(self) -> Answering:
        return Answering(self._tracer, self._inputs, self.tokenizer)
