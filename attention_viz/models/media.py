"""Run images and sounds through a pretrained model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel, UnusablePicture, UnusableText
from attention_viz.inputs.labelling import tokens_of_ids
from attention_viz.inputs.media.beside import Beside, BesideReader
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import CLASSES, InputField, Medium
from attention_viz.inputs.text import InputRow, read_target
from attention_viz.models.encoder_decoder import Answering
from attention_viz.models.parts import ModelParts
from attention_viz.recording.layout.beside_laid_out import BesideLaidOut, LaidOut
from attention_viz.recording.layout.positions import numbered
from attention_viz.recording.outputs.generation import nobody_speaks
from attention_viz.recording.runner import Pass
from attention_viz.recording.tracer import TokenAxes
from attention_viz.trace.seen import NO_TIMES
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace
from attention_viz.trace.trace_data import attach, behind

# What a model may read instead of a text.
Thing = Medium | Beside | Mapping[str, Tensor]


def check_reads_text(parts: ModelParts) -> None:
    """Refuse a text if the model reads something else."""
    if isinstance(parts.reader, BesideReader):
        _ = parts.reader.read("")  # says what it needs
    if parts.reader is not None:
        kind = parts.reader.kind
        raise UnusableText(f"{parts.name} reads {kind.plural}, not text; pass {kind.handed}")


def trace_media(
    parts: ModelParts,
    shown: str | Thing,
    picture: Picture | None,
    second_text: str | None,
    target: str | None,
    edits: Sequence[Edit],
    keep: frozenset[int] | None,
) -> Trace:
    """Trace an image, a sound, or a text beside an image; see `AttentionModel.trace`."""
    thing = shown if picture is None and not isinstance(shown, str) else Beside.of(shown, picture)
    if second_text is not None:
        raise UnusableText(f"{parts.name} reads {thing!r} alone; leave out the second text")
    given = _read(parts, thing)
    provenance = replace(
        parts.provenance,
        **given.named,
        target=target,
        notes=(*parts.provenance.notes, *given.notes),
        text=thing.text if isinstance(thing, Beside) else None,
    )
    run = _MediaRun(parts, given, parts.tracer.runner.inputs(given.tensors))
    if parts.facts.is_encoder_decoder:
        return _with_silence(parts, run.answer(target, edits, provenance, keep))
    if target is not None:
        raise UnsupportedModel(f"{parts.name} isn't an encoder–decoder, so it generates nothing; leave out target")
    return parts.tracer.trace(run.tensors, run.axes, edits, provenance, keep, seen=given.seen)


def _read(parts: ModelParts, thing: Thing) -> InputField:
    if parts.reader is not None:
        return parts.reader.read(thing)
    if isinstance(thing, Beside):
        why = f"; {parts.why_alone}" if parts.why_alone else ""
        raise UnusablePicture(f"{parts.name} reads only text, but got an image, {thing.picture!r}{why}")
    if (kind := next((kind for kind, one in CLASSES.items() if isinstance(thing, one)), None)) is not None:
        raise kind.error(f"{parts.name} reads text; got {kind.one}, {thing!r}")
    raise UnusableText(f"a text must be a str; got {type(thing).__name__}")


@dataclass(frozen=True, eq=False)
class _MediaRun:
    """An input that isn't text alone, and the names of its positions."""

    parts: ModelParts
    given: InputField
    tensors: dict[str, Tensor]

    def source(self, recorded: Pass) -> Tokens:
        """Name the positions of the image or sound, once their count is known."""
        laid_out = self.parts.laid_out
        if not isinstance(laid_out, LaidOut):
            return numbered(0)
        return laid_out.tokens(self.tensors, self._lengths(recorded).get(laid_out.stream, 0))

    def axes(self, recorded: Pass) -> TokenAxes:
        """Name each stream's axes: the input's parts, the words beside it, or numbers."""
        laid_out, tokenizer = self.parts.laid_out, self.parts.tokenizer
        ids, source = self.tensors.get("input_ids"), self.source(recorded)
        found = dict[str, Tokens]()
        for stream, count in self._lengths(recorded).items():
            if isinstance(laid_out, BesideLaidOut):
                found[stream] = laid_out.tokens(stream, self.tensors, count, tokenizer)
            elif laid_out is not None and stream == laid_out.stream:
                found[stream] = source
            elif ids is not None and ids.shape[1] == count:
                found[stream] = tokens_of_ids(tokenizer, [int(one) for one in ids[0].tolist()])
            else:
                found[stream] = numbered(count)
        return TokenAxes(found, found)

    def answer(
        self, target: str | None, edits: Sequence[Edit], provenance: Provenance, keep: frozenset[int] | None
    ) -> Trace:
        """Trace what an encoder–decoder generates from it, or the target."""
        parts = self.parts
        answering = Answering(parts.tracer, parts.inputs, parts.tokenizer, self.source, self.given.seen)
        reading = InputRow(Tokens((), None), self.tensors)
        if "decoder_input_ids" in self.tensors:
            return answering.trace_ids(reading, self.tensors["decoder_input_ids"], edits, provenance)
        # The output of such a model begins with a space, as words inside a text do.
        produced = None if target is None else read_target(parts.name, parts.tokenizer, f" {target.strip()}")
        return answering.trace(reading, produced, edits, provenance, keep)

    def _lengths(self, recorded: Pass) -> dict[str, int]:
        """Count the keys of each stream."""
        places = self.parts.tracer.anatomy.places
        calls = zip(recorded.calls, recorded.numbers, strict=True)
        return {places[number][0]: call.attention.shape[-1] for call, number in calls}


def _with_silence(parts: ModelParts, trace: Trace) -> Trace:
    """Add a note if the model itself takes the sound for one without speech."""
    silent = nobody_speaks(parts.tokenizer, trace.output_at(0))
    if silent is None:
        return trace
    note = f"The probability of no speech is {silent:.2f}, so the model may have invented its words: {NO_TIMES}"
    provenance = replace(trace.provenance, notes=(*trace.provenance.notes, note))
    return attach(trace.derived(provenance=provenance), behind(trace))
