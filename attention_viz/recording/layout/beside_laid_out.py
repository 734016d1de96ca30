"""Finds the positions of words and patches in a model that reads images or audio, once per model."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.inputs.labelling import tokens_of_ids
from attention_viz.inputs.media.beside import IDS, BesideReader, mark_of, marks_in
from attention_viz.inputs.media.readers import PICTURE, InputField, PictureReader, Reader, SoundReader
from attention_viz.recording.batches.batch import Intervention, call_of
from attention_viz.recording.layout.axes import SEEN
from attention_viz.recording.layout.placeholders import MeasuredPlaceholders, Placeholders
from attention_viz.recording.layout.positions import FrameLine, Grid, frames, moved, numbered, patches
from attention_viz.recording.layout.tiles import in_tiles, tile_names
from attention_viz.trace.kind import STREAM_KINDS
from attention_viz.trace.slots import joined_tokens
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from attention_viz.recording.probe import Anatomy
    from attention_viz.recording.runner import Runner


@dataclass(frozen=True)
class LaidOut:
    """One input's positions; `how` is None if only their order is known.

    Attributes:
        read: the patches that slots read, by stream, if they were found in order.
    """

    how: Grid | FrameLine | None
    stream: str
    main: str
    read: Mapping[str, Grid | None] = field(default_factory=dict[str, Grid | None])

    @classmethod
    def of(cls, reader: Reader, runner: "Runner", anatomy: "Anatomy") -> "LaidOut":
        """Find the positions of a reader's example."""
        stream = anatomy.streams[0]
        given = reader.example()
        inputs = runner.inputs(given.tensors)
        if runner.answers and "decoder_input_ids" not in inputs:
            from attention_viz.recording.probe import probe_ids

            inputs["decoder_input_ids"] = probe_ids(runner.model, 2).to(device_of(runner.model))
        first = call_of(runner, inputs, 0)
        count = first.attention.shape[-1]
        how: Grid | FrameLine | None = None
        if isinstance(reader, PictureReader) and not anatomy.axes:
            how = patches(runner, inputs, reader.main, count)
        elif isinstance(reader, SoundReader):
            seconds = given.seconds if reader.window is None else reader.window
            line = frames(runner, inputs, reader.main, count, seconds)
            how = FrameLine(_step(runner.model.config, inputs[reader.main], count, seconds) or line.step)
        elif reader.main.startswith("pixel"):
            try:
                how = patches(runner, inputs, reader.main, count, tiles=first.rows)
            except UnsupportedModel:  # its positions have numbers then, and no places
                how = None
        return cls(how, stream, reader.main, patches_read(runner, anatomy, inputs))

    def tokens(self, tensors: Mapping[str, Tensor], count: int, tiles: int = 1) -> Tokens:
        """Return the tokens along the input's axis."""
        if isinstance(self.how, FrameLine) and tiles == 1:
            return self.how.tokens(count)
        if not isinstance(self.how, Grid):
            return numbered(count)
        found = self.how.tokens(tensors[self.main])
        if tiles > 1:
            found = in_tiles(found, tile_names((), tiles, 1), ())
        if len(found) != count:
            raise UnsupportedModel(
                f"can't match the {count} positions of this image to its {len(found)} patches and special positions"
            )
        return found


def _step(config: Any, values: Tensor, count: int, seconds: float) -> float | None:
    """Return the seconds per frame; None if frames have no fixed number of samples."""
    strides = getattr(config, "conv_stride", None)
    if values.ndim == 2:
        return prod(strides) * seconds / values.shape[1] if isinstance(strides, list | tuple) and strides else None
    length = max(values.shape[1:])
    return round(length / count) * seconds / length


@dataclass(frozen=True, eq=False)
class BesideLaidOut:
    """The positions of a text beside images, per stream.

    Attributes:
        grids: an image's patches or a sound's frames, if they were found in order; None for a stream of words.
        mark: the id of the placeholder that a part of an image replaces in the text, if any.
        measured: the rectangles of placeholders.
        read: as in `LaidOut`.
    """

    grids: Mapping[str, Grid | FrameLine | None]
    mark: int | None
    measured: MeasuredPlaceholders = field(default_factory=MeasuredPlaceholders)
    read: Mapping[str, Grid | None] = field(default_factory=dict[str, Grid | None])

    @classmethod
    def of(cls, reader: BesideReader, runner: "Runner", anatomy: "Anatomy") -> "BesideLaidOut":
        """Find the positions by changing parts of an image and a word."""
        given, family = reader.example(), type(runner.model).__name__
        inputs = runner.inputs(given.tensors)
        if inputs.keys() < {IDS, reader.main}:
            raise UnsupportedModel(f"{family} doesn't take both {IDS} and {reader.main}")
        mark = mark_of(runner.model, "image" if reader.main == PICTURE else "audio")
        found = cls(dict[str, Grid | FrameLine | None](), mark, read=patches_read(runner, anatomy, inputs))
        for stream in anatomy.layers:
            if stream in anatomy.axes:
                continue
            call = anatomy.calls(stream)[0]
            first = call_of(runner, inputs, call)
            count = first.attention.shape[-1]
            grid: Grid | FrameLine | None = None
            if stream == "sound":
                with contextlib.suppress(UnsupportedModel):
                    line = frames(runner, inputs, reader.main, count, given.seconds, call)
                    step = _step(runner.model.config, inputs[reader.main], count, given.seconds)
                    grid = FrameLine(step or line.step)
            elif stream not in STREAM_KINDS or stream == "cross":
                found = replace(found, grids={**found.grids, stream: None})
                continue
            elif stream == "picture":
                with contextlib.suppress(UnsupportedModel):  # its positions have numbers then
                    grid = patches(runner, inputs, PICTURE, count, call, tiles=first.rows)
            elif count != inputs[IDS].shape[1] and PICTURE in inputs:  # the image comes before the words
                grid = patches(runner, inputs, PICTURE, count, call, _apart(runner, inputs, anatomy))
            found = replace(found, grids={**found.grids, stream: grid})
            if stream not in ("picture", "sound"):
                found._check_last_word(runner, inputs, stream, call)
        return found

    def placeholders(self, runner: "Runner", given: InputField) -> Placeholders:
        """Return a text's placeholders with their rectangles, measured once per shape of its images or video."""
        marks = marks_in(runner.model, given.tensors[IDS])
        return self.measured.of(runner, given.remade, marks) if marks else Placeholders()

    def _check_last_word(self, runner: "Runner", inputs: Mapping[str, Tensor], stream: str, call: int) -> None:
        """Refuse a stream whose last position isn't the last word."""
        other = inputs[IDS].clone()
        other[0, -1] = next(one for one in [*other[0].tolist(), 1, 2, 3] if one not in (self.mark, int(other[0, -1])))
        count = call_of(runner, inputs, call).attention.shape[-1]
        found = moved(runner, inputs, IDS, other, call)
        if found != count - 1:
            raise UnsupportedModel(
                f"can't match positions to words: {type(runner.model).__name__} has a text's last word at position "
                f"{found} of {count} in its {stream}, not at the end"
            )

    def tokens(
        self,
        stream: str,
        tensors: Mapping[str, Tensor],
        count: int,
        tokenizer: "PreTrainedTokenizerBase | None",
        placeholders: Placeholders,
        tiles: int = 1,
    ) -> Tokens:
        """Return a stream's tokens; ids only if it has words alone."""
        grid, mask = self.grids[stream], tensors.get("attention_mask")
        if tiles > 1:
            return _of_tiles(grid, tensors, count, placeholders, tiles)
        if stream == "sound":
            return grid.tokens(count) if isinstance(grid, FrameLine) else numbered(count)
        if stream == "picture":
            found = grid.tokens(tensors[PICTURE]) if isinstance(grid, Grid) and PICTURE in tensors else numbered(count)
            return found if len(found) == count else numbered(count)
        padding = () if mask is None else tuple(not flag for flag in mask[0].tolist())
        words = tokens_of_ids(tokenizer, [int(one) for one in tensors[IDS][0].tolist()], padding)
        if isinstance(grid, Grid) and PICTURE in tensors:
            found = joined_tokens(replace(grid, after=0).tokens(tensors[PICTURE]), words)
        else:
            found = placeholders.placed(words)
        if len(found) != count:
            raise UnsupportedModel(
                f"can't match the {count} positions of the {stream} to its {len(found)} patches and words"
            )
        return found


def _of_tiles(
    grid: Grid | FrameLine | None, tensors: Mapping[str, Tensor], count: int, placeholders: Placeholders, tiles: int
) -> Tokens:
    """Return the tokens of an image's tiles, of several images, or of a sound's windows, one after the other."""
    regions = placeholders.tower if len(placeholders.tower) == count else ()
    if isinstance(grid, FrameLine):
        names = [f"window {number} of {tiles}" for number in range(1, tiles + 1)]
        return in_tiles(grid.tokens(count // tiles), names, ())
    one = grid.tokens(tensors[PICTURE]) if grid is not None and PICTURE in tensors else None
    if one is None or len(one) * tiles != count:
        one = numbered(count // tiles)
    return in_tiles(one, tile_names(regions, tiles, placeholders.images), regions)


def laid_out_of(reader: Reader, runner: "Runner", anatomy: "Anatomy") -> LaidOut | BesideLaidOut:
    """Return a reader's positions."""
    if isinstance(reader, BesideReader):
        return BesideLaidOut.of(reader, runner, anatomy)
    return LaidOut.of(reader, runner, anatomy)


def patches_read(runner: "Runner", anatomy: "Anatomy", inputs: Mapping[str, Tensor]) -> dict[str, Grid | None]:
    """Find the patches that slots read, with the image's own positions kept apart."""
    found = dict[str, Grid | None]()
    for stream, axes in anatomy.axes.items():
        call, slots = anatomy.calls(stream)[0], axes.keys.slots
        if axes.keys.rest != SEEN or PICTURE not in inputs or "picture" not in anatomy.layers:
            continue
        found[stream] = None
        with contextlib.suppress(UnsupportedModel):  # its positions have numbers then
            count = call_of(runner, inputs, call).attention.shape[-1] - slots
            apart = _apart(runner, inputs, anatomy)
            grid = patches(runner, inputs, PICTURE, count, call, apart, side="key")
            found[stream] = replace(grid, before=grid.before - axes.keys.before)
    return found


def _apart(runner: "Runner", inputs: Mapping[str, Tensor], anatomy: "Anatomy") -> Intervention:
    """Keep the image's positions apart, so that one patch changes only one of the text's."""
    if "picture" not in anatomy.layers:
        raise UnsupportedModel(
            f"can't match positions to words: {type(runner.model).__name__} has no separate tower for the image"
        )
    count = call_of(runner, inputs, anatomy.calls("picture")[0]).attention.shape[-1]
    return Intervention((Allow(torch.eye(count, dtype=torch.bool), stream="picture"),), anatomy.places)
