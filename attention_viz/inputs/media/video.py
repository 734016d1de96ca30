"""Open a video with care: frames at regular times, all of one size."""

from collections.abc import Iterator
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnusablePicture, UnusableVideo
from attention_viz.inputs.media.arrays import array_of
from attention_viz.inputs.media.decoding import Decoded, decoded
from attention_viz.inputs.media.files import existing
from attention_viz.inputs.media.picture import Picture

__all__ = ["MOST_FRAMES", "MOST_FRAME_PIXELS", "Video"]

# The most frames of a video, and the most pixels of all its frames: 0.3 GB.
MOST_FRAMES = 128
MOST_FRAME_PIXELS = 100_000_000
_RATES = (0.01, 240.0)
# Frames per second that are read from a file, and that a list of frames has if you name no rate.
_OF_FILE, _OF_FRAMES = 2.0, 1.0


class Video:
    """A video's frames at regular times, in red, green and blue.

    Attributes:
        frames: (frame, row, column, 3), integers from 0 to 255.
        rate: frames per second.
        start: the first frame's time, in seconds.
        name: file name, or "video" if there is none.
        notes: changes made while opening it, as sentences.
    """

    def __init__(
        self,
        source: "str | PathLike[str] | bytes | list[Any] | tuple[Any, ...] | NDArray[Any] | Any",
        rate: float | None = None,
        *,
        start: float = 0.0,
    ) -> None:
        """Open a video.

        A file is decoded by PyAV, the extra `attention-viz[video]`, in a process of its own. It reads up to 128 frames
        and 100 million pixels from `start` on; `notes` says if the file has more.

        Args:
            source: the path of an MP4, MOV, WebM, MKV, AVI, Ogg, MPEG or GIF file, its bytes, or its frames: a list of
                pictures, as `Picture` takes them, or an array, (frame, row, column) or (frame, row, column, 3 or 4).
            rate: frames per second: of a file those to read, by default 2; of frames their own, by default 1.
            start: where to begin in a file, in seconds.

        Raises:
            UnusableVideo: the file can't be read, PyAV is missing, or frames differ in size or are too many.
        """
        _check_times(rate, start)
        self.name, self.start = "video", float(start)
        if isinstance(source, str | PathLike):
            self.name = Path(source).name
            source = existing(fspath(source), "video", "a video", UnusableVideo)
        if isinstance(source, Path | bytes):
            self.rate = float(_OF_FILE if rate is None else rate)
            found = decoded(source, self.name, self.rate, self.start, MOST_FRAMES, MOST_FRAME_PIXELS)
            self.frames, self.notes = found.frames, _notes(found, self.rate, self.start)
        else:
            if start:
                raise UnusableVideo(f"start= is for files; leave out the frames before {start:g} s instead")
            self.rate = float(_OF_FRAMES if rate is None else rate)
            self.frames, self.notes = _of_frames(source)
            if rate is None and len(self.frames) > 1:
                self.notes = (*self.notes, "Its frames were taken to be 1 second apart, since it has no rate.")
        self.frames.flags.writeable = False

    @property
    def times(self) -> tuple[float, ...]:
        """Each frame's time, in seconds."""
        return tuple(self.start + at / self.rate for at in range(len(self.frames)))

    @property
    def size(self) -> str:
        """Frames, width and height."""
        count, height, width, _ = self.frames.shape
        return f"{count} frame{'s' if count > 1 else ''} of {width} × {height}"

    def __repr__(self) -> str:
        """Return its name, size and rate."""
        return f"Video({self.name!r}, {self.size}, {self.rate:g} per second)"


def _check_times(rate: object, start: object) -> None:
    least, most = _RATES
    if rate is not None and (type(rate) not in (int, float) or not least <= float(str(rate)) <= most):
        raise UnusableVideo(f"rate must be {least:g} to {most:g} frames per second; got {rate!r}")
    if type(start) not in (int, float) or not (isfinite(seconds := float(str(start))) and seconds >= 0):
        raise UnusableVideo(f"start must be a finite number of seconds, 0 or more; got {start!r}")


def _notes(found: Decoded, rate: float, start: float) -> tuple[str, ...]:
    """Return notes on a file: the part that was read, and its rotation."""
    end = start + (len(found.frames) - 1) / rate
    notes = [f"Frames were read {rate:g} times per second, from {start:.2f} to {end:.2f} seconds."]
    if found.more:
        notes.append("The rest of it wasn't read; choose a part with start=, or a lower rate.")
    if found.turned:
        notes.append("It was rotated as the camera noted.")
    return tuple(notes)


def _of_frames(source: Any) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return the frames, and each note on them once."""
    if not isinstance(source, list | tuple) and not hasattr(source, "__array__"):
        raise UnusableVideo(
            f"a video must be a path, a file's bytes, or a list or array of frames; got {type(source).__name__}"
        )
    several: Any = source if isinstance(source, list | tuple) else array_of(source, "a video", UnusableVideo)
    if not isinstance(several, list | tuple) and several.ndim < 3:
        raise UnusableVideo(f"an array of frames must be (frame, row, column, 3); got {several.shape}")
    if not len(several):
        raise UnusableVideo("the video has no frames; pass at least one")
    if len(several) > MOST_FRAMES:
        raise UnusableVideo(f"the video has {len(several):,} frames; use at most {MOST_FRAMES}, such as every second")
    opened = list(_opened(several))
    pixels = [one.pixels for one in opened]
    return np.stack(pixels), tuple(dict.fromkeys(note for one in opened for note in one.notes))


def _opened(several: Any) -> Iterator[Picture]:
    """Open each frame, and refuse another size, or too many pixels."""
    first: Picture | None = None
    for at, frame in enumerate(several):
        try:
            one = frame if isinstance(frame, Picture) else Picture(frame)
        except UnusablePicture as error:
            raise UnusableVideo(f"frame {at} can't be read: {error}") from error
        first = first or one
        if one.pixels.shape != first.pixels.shape:
            raise UnusableVideo(f"frame {at} is {one.size} pixels, but frame 0 is {first.size}; use frames of one size")
        if (total := len(several) * one.pixels.size // 3) > MOST_FRAME_PIXELS:
            raise UnusableVideo(
                f"{len(several)} frames of {one.size} have {total:,} pixels; use at most {MOST_FRAME_PIXELS:,} in all"
            )
        yield one
