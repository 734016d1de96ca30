"""The images, audio or video as the model read them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.trace.kind import MEDIA, InputKind

# The end of notes on audio without speech.
NO_TIMES = "no word has a time in it."


@dataclass(frozen=True, eq=False)
class Seen:
    """An image, audio or video after the model's cropping, rotating, resizing or resampling.

    Attributes:
        picture: RGB, 0 to 255; None for audio.
        sound: samples, -1 to 1; None for an image.
        others: further images beside the same text, or a video's frames after its first.
        times: seconds of a video's frames; empty without a video.
    """

    picture: UInt8[Tensor, "row column 3"] | None = None
    sound: Float[Tensor, " sample"] | None = None
    rate: int = 0
    others: tuple[UInt8[Tensor, "_ _ 3"], ...] = ()
    times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse wrong shapes or dtypes, as in a broken file."""
        sound = self.sound
        for picture in self.pictures:
            if picture.ndim != 3 or picture.shape[-1] != 3 or picture.dtype != torch.uint8:
                got = f"{tuple(picture.shape)} of {picture.dtype}"
                raise TraceError(f"an image must be (row, column, 3) of whole numbers from 0 to 255; got {got}")
        if sound is not None and (sound.ndim != 1 or not sound.is_floating_point() or self.rate < 1):
            got = f"{tuple(sound.shape)} of {sound.dtype} at a rate of {self.rate}"
            raise TraceError(f"audio must be one row of samples from -1 to 1 with their rate; got {got}")

        if self.times and (len(self.times) != len(self.pictures) or sorted(self.times) != list(self.times)):
            raise TraceError(f"a video needs a time per frame, in order; got {self.times!r:.80}")

    @property
    def pictures(self) -> tuple[UInt8[Tensor, "_ _ 3"], ...]:
        """All images, or a video's frames, in the order of `Region.picture`."""
        return () if self.picture is None else (self.picture, *self.others)

    @property
    def tensors(self) -> dict[InputKind, Tensor]:
        """The existing tensors, by kind."""
        return {kind: tensor for kind in MEDIA if (tensor := getattr(self, kind)) is not None}


NOTHING = Seen()
