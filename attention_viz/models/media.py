"""Run images and sounds through a pretrained model."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import (
    AttentionVizError,
    ShapeError,
    TextTooLong,
    UnsupportedModel,
    UnusablePicture,
    UnusableSound,
    UnusableText,
    UnusableVideo,
    first_line,
)
from attention_viz.inputs.chats import Layout, lay_out_beside
from attention_viz.inputs.check import checked_mask
from attention_viz.inputs.labelling import tokens_of_ids
from attention_viz.inputs.media.arrays import checked_tensors, described
from attention_viz.inputs.media.beside import Beside, BesideReader, Messages, marks_in
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import CLASSES, PICTURE, SPEECH, InputField, Medium, TensorReader
from attention_viz.inputs.media.remade import VIDEO
from attention_viz.inputs.media.sound import Sound
from attention_viz.inputs.media.video import Video
from attention_viz.inputs.text import AS_TYPED, InputRow, Wording, read_target
from attention_viz.models.encoder_decoder import Answering
from attention_viz.models.parts import ModelParts
from attention_viz.recording.call_rows import WindowOrder
from attention_viz.recording.layout.axes import TEXT
from attention_viz.recording.layout.beside_laid_out import BesideLaidOut, LaidOut
from attention_viz.recording.layout.merged import canvas_axes
from attention_viz.recording.layout.placeholders import Placeholders
from attention_viz.recording.layout.positions import Grid, in_windows, numbered
from attention_viz.recording.layout.tiles import in_tiles, tile_names
from attention_viz.recording.outputs.generation import nobody_speaks
from attention_viz.recording.runner import Pass
from attention_viz.recording.tracer import TokenAxes
from attention_viz.trace.ahead import Progress
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.kind import MEDIA, STREAM_KINDS, stream_kind
from attention_viz.trace.seen import NO_TIMES
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace
from attention_viz.trace.trace_data import attach, behind

# What a model may read instead of a text, and beside one.
Thing = Medium | Beside | Mapping[str, Tensor]
BesideText = Picture | Sequence[Picture] | Video | Sound | None


def check_reads_text(parts: ModelParts) -> None:
    """Refuse a text if the model reads something else."""
    if isinstance(parts.reader, BesideReader):
        _ = parts.reader.read("")  # says what it needs
    if parts.reader is not None:
        kind = parts.reader.kind
        raise UnusableText(f"{parts.name} reads {kind.plural}, not text; pass {kind.handed}")


def check_reads_video(parts: ModelParts) -> None:
    """Refuse a video if the model reads no text with one."""
    if not isinstance(parts.reader, BesideReader):
        what = parts.reader.kind.plural if parts.reader is not None else "text"
        raise UnusableVideo(f"{parts.name} reads {what}, not a text with a video; leave out video=")
    if parts.reader.why_no_video:
        raise UnusableVideo(parts.reader.why_no_video)


def trace_media(
    parts: ModelParts,
    shown: str | Messages | Thing,
    pictures: BesideText,
    second_text: str | None,
    target: str | None,
    edits: Sequence[Edit],
    keep: frozenset[int] | None,
    wording: Wording = AS_TYPED,
    progress: Progress | None = None,
) -> Trace:
    """Trace an image, a sound, or a text beside images; see `AttentionModel.trace`."""
    check_special_tokens(wording)
    thing = _thing(shown, pictures, chat=wording.chat)
    if second_text is not None:
        raise UnusableText(f"{parts.name} reads {thing!r} alone; leave out the second text")
    if wording.chat and not isinstance(thing, Beside):
        raise UnusableText(f"got {thing!r:.80} without a text; leave out chat=True")
    return _traced(parts, thing, _read(parts, thing), target, edits, keep, progress)


def check_special_tokens(wording: Wording) -> None:
    """Refuse to leave out special tokens, which a processor puts around images."""
    if not wording.special_tokens:
        raise UnusableText("special_tokens=False is for texts alone; leave it out with an image, a video or audio")


def trace_tensors(
    parts: ModelParts, tensors: Mapping[str, object], edits: Sequence[Edit], keep: frozenset[int] | None = None
) -> Trace:
    """Trace a processor's own tensors; see `AttentionModel.trace_ids`."""
    if isinstance(parts.reader, TensorReader):
        named = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        if "attention_mask" in parts.reader.example().tensors and "attention_mask" not in named:
            named["attention_mask"] = torch.ones_like(cast("Tensor", tensors["input_ids"]))
        return _traced(parts, None, parts.reader.read(named), None, edits, keep)
    if not isinstance(parts.reader, BesideReader):
        names = ", ".join(name for name in tensors if name not in ("input_ids", "attention_mask"))
        raise UnsupportedModel(f"{parts.name} reads ids alone; leave out {names}, or wrap it with its processor")
    reader, runner = parts.reader, parts.tracer.runner
    placed = ("an image", "a video") if VIDEO in tensors else ("audio",) if {*SPEECH} & {*tensors} else ("an image",)
    ids = parts.inputs.row(cast("Tensor", tensors["input_ids"]), placed=placed)
    unknown = [name for name in tensors if name not in runner.named]
    if unknown and (wrong := [name for name in unknown if name not in (made := reader.example().tensors)]):
        raise ShapeError(f"{parts.name} takes no {', '.join(wrong)}; its processor makes {', '.join(made)}")
    named = checked_tensors({**tensors, "input_ids": ids})
    if "attention_mask" in named:
        named["attention_mask"] = checked_mask(ids, named["attention_mask"])
    try:
        return _traced(parts, None, reader.of_tensors(named), None, edits, keep)
    except (AttentionVizError, MemoryError):
        raise
    except Exception as error:  # whatever a model's own code raises
        places, why = len(marks_in(runner.model, ids)), first_line(error).rstrip(".")
        raise ShapeError(
            f"{parts.name} can't read {described(named)}, with {places} placeholders in the ids: {why}. "
            "Pass all tensors as its processor makes them"
        ) from error


def one_or_several(
    picture: Picture | None, pictures: "Sequence[Picture] | None", video: Video | None, sound: Sound | None = None
) -> BesideText:
    """Return the image, the images, the video or the audio beside a text."""
    if sound is not None:
        if any(one is not None for one in (picture, pictures, video)):
            raise UnusableSound("pass images, video= or sound= beside a text, only one of them")
        if not isinstance(sound, Sound):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise UnusableSound(f"sound= takes av.Sound(path); got {type(sound).__name__}")
        return sound
    if video is not None:
        if picture is not None or pictures is not None:
            raise UnusableVideo("pass images or video= beside a text, not both")
        if not isinstance(video, Video):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise UnusableVideo(f"video= takes av.Video(path); got {type(video).__name__}")
        return video
    if picture is not None and pictures is not None:
        raise UnusablePicture("pass picture= for one image or pictures=[…] for several, not both")
    if pictures is not None and not isinstance(pictures, list | tuple):
        raise UnusablePicture(f"pictures= takes a list of av.Picture(path); got {type(pictures).__name__}")
    return picture if pictures is None else pictures


def _thing(shown: "str | Messages | Thing", pictures: BesideText, *, chat: bool) -> Thing:
    """Return an input, with the images or the video beside a text."""
    if isinstance(pictures, Video):
        return Beside.of_video(shown, pictures, chat=chat)
    if isinstance(pictures, Sound):
        return Beside.of_sound(shown, pictures, chat=chat)
    if pictures is None and not isinstance(shown, str | list | tuple):
        return cast("Thing", shown)
    return Beside.of(shown, pictures, chat=chat)


def _traced(
    parts: ModelParts,
    thing: Thing | None,
    given: InputField,
    target: str | None,
    edits: Sequence[Edit],
    keep: frozenset[int] | None,
    progress: Progress | None = None,
) -> Trace:
    run = MediaRun(parts, given, parts.tracer.runner.inputs(given.tensors), _placeholders(parts, given))
    layout = _layout(parts, given)
    provenance = replace(
        parts.provenance,
        **given.named,
        target=target,
        notes=(*parts.provenance.notes, *given.notes, *run.placeholders.notes, *layout.notes),
        text=thing.written if isinstance(thing, Beside) else None,
        chat=isinstance(thing, Beside) and (thing.chat or not isinstance(thing.text, str)),
        segments=layout.segments,
        answer=layout.answer,
    )
    codes = run.tensors.get("decoder_input_ids")
    if parts.facts.is_encoder_decoder and (codes is None or codes.ndim == 2):  # several codes are no token
        return _with_silence(parts, run.answer(target, edits, provenance, keep, progress))
    if target is not None:
        raise UnsupportedModel(f"{parts.name} isn't an encoder–decoder, so it generates nothing; leave out target")
    return parts.tracer.trace(run.tensors, run.axes, edits, provenance, keep, progress, given.seen)


def _layout(parts: ModelParts, given: InputField) -> Layout:
    """Find a chat's messages and images among its tokens."""
    if given.chat is None or parts.tokenizer is None or not isinstance(parts.laid_out, BesideLaidOut):
        return Layout()
    ids = given.tensors["input_ids"]
    tokens = tokens_of_ids(parts.tokenizer, [int(one) for one in ids[0].tolist()])
    return lay_out_beside(given.chat, tokens, marks_in(parts.inputs.model, ids), parts.tokenizer)


def _placeholders(parts: ModelParts, given: InputField) -> Placeholders:
    """Check a text's length, and measure what its placeholders read."""
    if not isinstance(parts.laid_out, BesideLaidOut):
        return Placeholders()
    count, limit = given.tensors["input_ids"].shape[1], parts.inputs.limit
    if limit is not None and count > limit:
        beside = "video" if given.remade is not None and given.remade.times else "images"
        beside = "audio" if given.seen.sound is not None else beside
        raise TextTooLong(parts.name, count, limit, f"text with its {beside}")
    return parts.laid_out.placeholders(parts.tracer.runner, given)


def _read(parts: ModelParts, thing: Thing) -> InputField:
    if isinstance(thing, Video):
        raise UnusableVideo(f"{parts.name} reads no video alone; use trace(text, video=…)")
    if isinstance(thing, Beside) and thing.video is not None:
        check_reads_video(parts)
    if isinstance(thing, Beside) and thing.sound is not None and not isinstance(parts.reader, BesideReader):
        why = parts.facts.why_alone or (
            "wrap a model that reads both with its processor, which takes text= and audio= and has an audio_token"
        )
        raise UnusableSound(f"{parts.name} reads no text with audio here; {why}")
    if parts.reader is not None:
        return parts.reader.read(thing)
    if isinstance(thing, Beside):
        why = f"; {parts.facts.why_alone}" if parts.facts.why_alone else ""
        got = f"an image, {thing.pictures[0]!r}" if thing.pictures else "a chat's messages; pass chat=True and a text"
        raise UnusablePicture(f"{parts.name} reads only text, but got {got}{why}")
    if (kind := next((kind for kind, one in CLASSES.items() if isinstance(thing, one)), None)) is not None:
        raise kind.error(f"{parts.name} reads text; got {kind.one}, {thing!r}")
    raise UnusableText(f"a text must be a str; got {type(thing).__name__}")


@dataclass(frozen=True, eq=False)
class MediaRun:
    """An input that isn't text alone, and the names of its positions."""

    parts: ModelParts
    given: InputField
    tensors: dict[str, Tensor]
    placeholders: Placeholders = field(default_factory=Placeholders)

    def source(self, recorded: Pass) -> Tokens:
        """Name the positions of the image or sound, once their count is known."""
        laid_out = self.parts.laid_out
        if not isinstance(laid_out, LaidOut):
            return numbered(0)
        _, count, tiles = self._lengths(recorded).get(laid_out.stream, (0, 0, 1))
        words = self._words(count) if laid_out.how is None and laid_out.stream not in MEDIA else None
        found = laid_out.tokens(self.tensors, count, tiles) if words is None else words
        order = self._orders(recorded).get(laid_out.stream)
        return found if order is None else in_windows(found, order.origin.tolist())

    def axes(self, recorded: Pass) -> TokenAxes:
        """Name each stream's axes: the input's parts, the words beside it, or numbers."""
        laid_out, source, lengths = self.parts.laid_out, self.source(recorded), self._lengths(recorded)
        queries, keys, orders = dict[str, Tokens](), dict[str, Tokens](), self._orders(recorded)
        anatomy = self.parts.tracer.anatomy
        if anatomy.has_canvas:
            ids = [int(one) for one in self.tensors["decoder_input_ids"][0].tolist()]
            text = self._words(self.tensors["input_ids"].shape[1])
            assert text is not None
            canvas = tokens_of_ids(self.parts.tokenizer, ids)
            return TokenAxes(*canvas_axes(anatomy.streams, recorded, text, canvas))
        for stream, (asking, count, tiles) in lengths.items():
            if stream in anatomy.axes:
                continue
            if isinstance(laid_out, BesideLaidOut) and asking == count and stream in STREAM_KINDS:
                tokenizer = self.parts.tokenizer
                keys[stream] = laid_out.tokens(stream, self.tensors, count, tokenizer, self.placeholders, tiles)
            elif isinstance(laid_out, LaidOut) and stream == laid_out.stream:
                keys[stream] = source
            else:
                words = self._words(count) if stream_kind(stream) not in MEDIA else None
                keys[stream] = numbered(count) if words is None else words
            queries[stream] = keys[stream]
            if stream in orders and keys[stream] is source:
                queries[stream] = source
            elif stream in orders:
                keys[stream] = queries[stream] = in_windows(keys[stream], orders[stream].origin.tolist())
            elif asking != count or stream_kind(stream) == "cross":
                words = self._words(asking) if stream_kind(stream) not in MEDIA else None
                queries[stream] = numbered(asking) if words is None else words
        own = {stream: tokens for stream, tokens in keys.items() if stream_kind(stream) not in ("decoder", "cross")}
        for stream, (_, count, _) in lengths.items():  # text attends to the positions of a tower
            if stream_kind(stream) == "cross" and stream not in anatomy.axes:
                keys[stream] = next((one for one in own.values() if len(one) == count), numbered(count))
        return TokenAxes(queries, keys).with_slots(self._of_slots(recorded))

    def _words(self, count: int) -> Tokens | None:
        """Return the text's tokens, padding included; None if it has another number."""
        ids, mask = self.tensors.get("input_ids"), self.tensors.get("attention_mask")
        if ids is None or ids.shape != (1, count):
            return None
        padding = tuple(not flag for flag in mask[0].tolist()) if mask is not None and mask.shape == ids.shape else ()
        return tokens_of_ids(self.parts.tokenizer, [int(one) for one in ids[0].tolist()], padding)

    def _of_slots(self, recorded: Pass) -> dict[str, tuple[Tokens, Tokens]]:
        """Name the rows and columns of streams with slots."""
        anatomy, found = self.parts.tracer.anatomy, dict[str, tuple[Tokens, Tokens]]()
        for call, number in zip(recorded.calls, recorded.numbers, strict=True):
            stream = anatomy.streams[number]
            if stream in found or stream not in anatomy.axes:
                continue
            axes, (queries, keys) = anatomy.axes[stream], call.attention.shape[1:]
            grid = None if self.parts.laid_out is None else self.parts.laid_out.read.get(stream)
            read, names = functools.partial(self._read, grid), tile_names((), call.tiles, 1)
            rows, columns = (
                axis.tokens(count // call.tiles, read) for axis, count in ((axes.queries, queries), (axes.keys, keys))
            )
            tiled = call.tiles > 1
            found[stream] = (in_tiles(rows, names, ()), in_tiles(columns, names, ())) if tiled else (rows, columns)
        return found

    def _read(self, grid: Grid | None, kind: str, count: int) -> Tokens:
        """Name positions beside slots: words, patches if they are known, else numbers."""
        # A Q-Former's own words are another tokenizer's.
        own = self.tensors.get("qformer_input_ids")
        ids, tokenizer = (self.tensors.get("input_ids"), self.parts.tokenizer) if own is None else (own, None)
        if kind == TEXT and ids is not None and ids.shape[1] == count:
            mask = self.tensors.get("attention_mask" if own is None else "qformer_attention_mask")
            padding = () if mask is None or mask.shape != ids.shape else tuple(not flag for flag in mask[0].tolist())
            return tokens_of_ids(tokenizer, [int(one) for one in ids[0].tolist()], padding)
        found = (
            numbered(count)
            if grid is None or kind == TEXT or PICTURE not in self.tensors
            else grid.tokens(self.tensors[PICTURE])
        )
        return found if len(found) == count else numbered(count)

    def answer(
        self,
        target: str | None,
        edits: Sequence[Edit],
        provenance: Provenance,
        keep: frozenset[int] | None,
        progress: Progress | None = None,
    ) -> Trace:
        """Trace what an encoder–decoder generates from it, or the target."""
        parts = self.parts
        answering = Answering(parts.tracer, parts.inputs, parts.tokenizer, self.source, self.given.seen, self.axes)
        reading = InputRow(Tokens((), None), self.tensors)
        if "decoder_input_ids" in self.tensors:
            return answering.trace_ids(reading, self.tensors["decoder_input_ids"], edits, provenance, keep)
        # The output of such a model begins with a space, as words inside a text do.
        produced = None if target is None else read_target(parts.name, parts.tokenizer, f" {target.strip()}")
        return answering.trace(reading, produced, edits, provenance, keep, progress)

    def _lengths(self, recorded: Pass) -> dict[str, tuple[int, int, int]]:
        """Count the queries and keys of each stream, and its tiles."""
        places = self.parts.tracer.anatomy.places
        calls = zip(recorded.calls, recorded.numbers, strict=True)
        return {
            places[number][0]: (
                call.attention.shape[-2] if call.order is None else call.positions,
                call.positions,
                call.tiles,
            )
            for call, number in calls
        }

    def _orders(self, recorded: Pass) -> dict[str, WindowOrder]:
        """Return the order of each stream's windows."""
        places = self.parts.tracer.anatomy.places
        calls = zip(recorded.calls, recorded.numbers, strict=True)
        return {places[number][0]: call.order for call, number in calls if call.order is not None}


def _with_silence(parts: ModelParts, trace: Trace) -> Trace:
    """Add a note if the model itself takes the sound for one without speech."""
    silent = nobody_speaks(parts.tokenizer, trace.output_at(0))
    if silent is None:
        return trace
    note = f"The probability of no speech is {silent:.2f}, so the model may have invented its words: {NO_TIMES}"
    provenance = replace(trace.provenance, notes=(*trace.provenance.notes, note))
    return attach(trace.derived(provenance=provenance), behind(trace))


def check_keeps_all(name: str, cells: KeptCells | None) -> None:
    """Refuse to keep some heads or rows of an image or audio."""
    if cells is not None:
        raise UnsupportedModel(f"{name} can't keep {cells} only of images or audio; use layers=")
