"""How a model reads what is no text: a picture, a sound, or tensors of the names that its example has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel, UnusablePicture, UnusableText
from attention_viz.inputs.check import Inputs
from attention_viz.inputs.labelling import tokens_of_ids
from attention_viz.inputs.media.beside import Beside, BesideReader
from attention_viz.inputs.media.given import InputField
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import CLASSES, Medium, Reader
from attention_viz.inputs.text import InputRow, read_target
from attention_viz.models.encoder_decoder import Answering
from attention_viz.recording.layout.beside_laid_out import BesideLaidOut
from attention_viz.recording.layout.laid_out import LaidOut
from attention_viz.recording.layout.positions import numbered
from attention_viz.recording.outputs.generation import nobody_speaks
from attention_viz.recording.runner import Pass
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.trace.rerun import attach, behind
from attention_viz.trace.shown.kind import InputKind
from attention_viz.trace.shown.seen import NO_TIMES, Seen
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Showing", "Thing"]

# What a model may be shown in place of a text.
Thing = Medium | Beside | Mapping[str, Tensor]


class Showing(ABC):
    """A model that may read something else than text."""

    name: str
    reader: Reader | None
    tokenizer: "PreTrainedTokenizerBase | None"
    _laid_out: LaidOut | BesideLaidOut | None
    _tracer: Tracer
    _inputs: Inputs
    _provenance: Provenance
    why_alone: str

    @property
    @abstractmethod
    def answers(self) -> bool:
        """Whether it is an encoder–decoder."""

    @property
    def reads(self) -> InputKind:
        """What it reads: "text", "picture", "sound", or "tensors" of the names that its example has."""
        return InputKind.TEXT if self.reader is None else self.reader.kind

    def _check_reads_text(self) -> None:
        """Refuse a text where something else is read."""
        if isinstance(self.reader, BesideReader):
            _ = self.reader.read("")  # says what it needs
        if self.reader is not None:
            raise UnusableText(f"{self.name} reads {self.reads.plural}, no text; give it {self.reads.handed}")

    def _given(self, thing: Thing) -> InputField:
        if self.reader is not None:
            return self.reader.read(thing)
        if isinstance(thing, Beside):
            why = f"; {self.why_alone}" if self.why_alone else ""
            raise UnusablePicture(f"{self.name} reads text alone, and a picture was given: {thing.picture!r}{why}")
        if (kind := next((kind for kind, one in CLASSES.items() if isinstance(thing, one)), None)) is not None:
            raise kind.error(f"{self.name} reads text, and {kind.one} was given: {thing!r}")
        raise UnusableText(f"a text has to be a str; got {type(thing).__name__}")

    def _trace_shown(
        self,
        shown: str | Thing,
        picture: Picture | None,
        beside: str | None,
        target: str | None,
        edits: Sequence[Edit],
        keep: frozenset[int] | None,
    ) -> Trace:
        """The trace of something that is no text, or not alone; see `AttentionModel.trace`."""
        thing = shown if picture is None and not isinstance(shown, str) else Beside.of(shown, picture)
        if beside is not None:
            raise UnusableText(f"a second text was given beside {thing!r}, and {self.name} reads one thing at a time")
        given, laid_out = self._given(thing), self._laid_out
        provenance = replace(self._provenance, **given.named, target=target)
        provenance = replace(provenance, notes=(*provenance.notes, *given.notes))
        provenance = replace(provenance, text=thing.text if isinstance(thing, Beside) else None)
        tensors = self._tracer.runner.inputs(given.tensors)

        def source(recorded: Pass) -> Tokens:
            if not isinstance(laid_out, LaidOut):
                return numbered(0)
            return laid_out.tokens(tensors, self._lengths(recorded).get(laid_out.stream, 0))

        if self.answers:
            return self._with_silence(self._answer(tensors, source, target, edits, provenance, keep, given.seen))
        if target is not None:
            raise UnsupportedModel(f"a target was given, and {self.name} is no encoder–decoder: it says nothing")

        def axes(recorded: Pass) -> TokenAxes:
            return self._axes(tensors, source(recorded), self._lengths(recorded))

        return self._tracer.trace(tensors, axes, edits, provenance, keep, seen=given.seen)

    def _answer(
        self,
        tensors: dict[str, Tensor],
        source: Callable[[Pass], Tokens],
        target: str | None,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None,
        seen: Seen,
    ) -> Trace:
        answering = Answering(self._tracer, self._inputs, self.tokenizer, source, seen)
        reading = InputRow(Tokens((), None), tensors)
        if "decoder_input_ids" in tensors:
            return answering.trace_ids(reading, tensors["decoder_input_ids"], edits, provenance)
        # What such a model says begins with a space, as words inside a text do.
        said = None if target is None else read_target(self.name, self.tokenizer, f" {target.strip()}")
        return answering.trace(reading, said, edits, provenance, keep)

    def _axes(self, tensors: Mapping[str, Tensor], source: Tokens, lengths: Mapping[str, int]) -> TokenAxes:
        """What stands along the axes of each stream: what is read, the words beside it, or numbers."""
        ids = tensors.get("input_ids")
        found = dict[str, Tokens]()
        for stream, count in lengths.items():
            if isinstance(self._laid_out, BesideLaidOut):
                found[stream] = self._laid_out.tokens(stream, tensors, count, self.tokenizer)
            elif self._laid_out is not None and stream == self._laid_out.stream:
                found[stream] = source
            elif ids is not None and ids.shape[1] == count:
                found[stream] = tokens_of_ids(self.tokenizer, [int(one) for one in ids[0].tolist()])
            else:
                found[stream] = numbered(count)
        return TokenAxes(found, found)

    def _lengths(self, recorded: Pass) -> dict[str, int]:
        """How many positions each stream looks at."""
        places = self._tracer.anatomy.places
        calls = zip(recorded.calls, recorded.numbers, strict=True)
        return {places[number][0]: call.attention.shape[-1] for call, number in calls}

    def _with_silence(self, trace: Trace) -> Trace:
        """The trace, with a word on it where the model itself takes what it heard for no speech."""
        silent = nobody_speaks(self.tokenizer, trace.output_at(0))
        if silent is None:
            return trace
        notes = (
            *trace.provenance.notes,
            f"The model takes it with {silent:.2f} for a sound in which nobody speaks, so what it says may be made up: "
            f"{NO_TIMES}",
        )
        return attach(trace.derived(provenance=replace(trace.provenance, notes=notes)), behind(trace))
