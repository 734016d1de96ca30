"""What stands along the axes of a model that reads something else than text, found out once and for all."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.inputs.media.readers import PictureReader, Reader, SoundReader
from attention_viz.recording.batches.until import call_of
from attention_viz.recording.layout.positions import FrameLine, Grid, frames, numbered, patches
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.recording.probe import Anatomy
    from attention_viz.recording.runner import Runner

__all__ = ["LaidOut"]


@dataclass(frozen=True)
class LaidOut:
    """How what a model reads stands along its axes.

    Attributes:
        how: of a picture its grid of patches, of a sound its line of frames; None where only the order is known.
        main: the tensor that holds what is read.
    """

    how: Grid | FrameLine | None
    stream: str
    main: str

    @classmethod
    def of(cls, reader: Reader, runner: "Runner", anatomy: "Anatomy") -> "LaidOut":
        """Find it out."""
        stream = anatomy.streams[0]
        given = reader.example()
        inputs = runner.inputs(given.tensors)
        if runner.answers and "decoder_input_ids" not in inputs:
            from attention_viz.recording.probe import probe_ids

            inputs["decoder_input_ids"] = probe_ids(runner.model, 2).to(device_of(runner.model))
        count = call_of(runner, inputs, 0).attention.shape[-1]
        how: Grid | FrameLine | None = None
        if isinstance(reader, PictureReader):
            how = patches(runner, inputs, reader.main, count)
        elif isinstance(reader, SoundReader):
            seconds = given.seconds if reader.window is None else reader.window
            line = frames(runner, inputs, reader.main, count, seconds)
            how = FrameLine(_step(runner.model.config, inputs[reader.main], count, seconds) or line.step)
        elif reader.main.startswith("pixel"):
            try:
                how = patches(runner, inputs, reader.main, count)
            except UnsupportedModel:  # its positions have numbers then, and no places
                how = None
        return cls(how, stream, reader.main)

    def tokens(self, tensors: Mapping[str, Tensor], count: int) -> Tokens:
        """What stands along the axis of what is read."""
        if isinstance(self.how, FrameLine):
            return self.how.tokens(count)
        if self.how is None:
            return numbered(count)
        found = self.how.tokens(tensors[self.main])
        if len(found) != count:
            raise UnsupportedModel(
                f"the model attends over {count} positions of this picture, and its patches and special positions are "
                f"{len(found)}: which part of the picture a position is isn't known"
            )
        return found


def _step(config: Any, values: Tensor, count: int, seconds: float) -> float | None:
    """How many seconds a frame is from the next, where each is of a fixed number of samples or columns."""
    strides = getattr(config, "conv_stride", None)
    if values.ndim == 2:
        return prod(strides) * seconds / values.shape[1] if isinstance(strides, list | tuple) and strides else None
    length = max(values.shape[1:])
    return round(length / count) * seconds / length
