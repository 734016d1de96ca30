"""Open a sound with care, mix its channels to one, and note all changes."""

import io
from math import gcd
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnusableSound
from attention_viz.inputs.media.arrays import array_of
from attention_viz.inputs.media.files import existing
from attention_viz.trace.provenance import renamed

__all__ = ["LONGEST", "SILENCE", "Sound"]

# The most seconds kept: no model here reads more at once.
LONGEST = 600.0
# Samples up to this count as silent; 1 is the loudest, and the last of 16 bits is 3e-5.
SILENCE = 1e-4
FORMATS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "AIFF")
_RATES = (1_000, 768_000)
_MOST_CHANNELS = 64
# The most samples decoded, over all channels: 0.4 GB.
_MOST_SAMPLES = 100_000_000


class Sound:
    """Audio with one channel.

    Attributes:
        samples: from -1 to 1, float32.
        rate: samples per second.
        name: file name, or "sound" if there is none.
        start: where it begins in the file or array, in seconds.
        whole: length of the whole file or array, in seconds.
        notes: changes made while opening it, as sentences.
    """

    def __init__(
        self,
        source: "str | PathLike[str] | bytes | NDArray[Any] | Any",
        rate: int | None = None,
        *,
        start: float = 0.0,
    ) -> None:
        """Open audio.

        Several channels become their mean. Long audio is read from `start` on; `notes` says so.

        Args:
            source: the path of a WAV, FLAC, Ogg, MP3 or AIFF file, its bytes, or an array of samples: (sample,) or
                (sample, channel), from -1 to 1, or 16- or 32-bit integers.
            rate: samples per second of an array; a file has its own.
            start: where to begin, in seconds.
        """
        notes = list[str]()
        self.name = "sound"
        if type(start) not in (int, float) or not 0 <= start < float("inf"):
            raise UnusableSound(f"start must be a finite number of seconds, 0 or more; got {start!r}")
        if isinstance(source, str | PathLike):
            self.name = Path(source).name
            source = existing(fspath(source), "audio", "audio", UnusableSound)
        if isinstance(source, Path | bytes):
            if rate is not None:
                raise UnusableSound(f"{self.name} has its own rate; leave out rate={rate!r}")
            samples, self.rate, self.whole = _decoded(source, self.name, start)
        else:
            samples, self.rate, self.whole = _of_array(source, rate, start)
        if samples.shape[1] > 1:
            notes.append(f"Its {samples.shape[1]} channels were averaged.")
        self.samples: NDArray[np.float32] = samples.mean(axis=1, dtype=np.float32)
        self.samples.flags.writeable = False
        self.start = float(start)
        if self.start or self.seconds < self.whole - 1e-6:
            end = self.start + self.seconds
            notes.append(f"Seconds {self.start:,.2f} to {end:,.2f} of {self.whole:,.2f} were read.")
        self.notes = tuple(notes)

    told = renamed("told", "notes")

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate

    @property
    def is_silent(self) -> bool:
        """Whether it is silent."""
        return bool(np.abs(self.samples - self.samples.mean()).max() < SILENCE)

    def at(self, rate: int) -> NDArray[np.float32]:
        """Return its samples at another rate."""
        if rate == self.rate:
            return self.samples
        from scipy.signal import resample_poly

        shared = gcd(rate, self.rate)
        return np.asarray(resample_poly(self.samples, rate // shared, self.rate // shared), np.float32)

    def __repr__(self) -> str:
        """Return its name, length and rate."""
        return f"Sound({self.name!r}, {self.seconds:.2f} s at {self.rate:,} samples per second)"


def _decoded(source: Path | bytes, name: str, start: float) -> tuple[NDArray[np.float32], int, float]:
    """Return a file's samples from a second on, (sample, channel), their rate, and its whole length."""
    import soundfile

    head = source[:64] if isinstance(source, bytes) else _head(source)
    if head[4:8] == b"ftyp" or head[:4] == b"\x1aE\xdf\xa3" or head[8:12] == b"AVI ":
        raise UnusableSound(f"{name} is a video, or audio packed as one; save its audio as WAV or FLAC first")
    try:
        with soundfile.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            rate, frames, channels = int(file.samplerate), int(file.frames), int(file.channels)
            if file.format not in FORMATS:
                raise UnusableSound(f"{name} is in the format {file.format}; use WAV, FLAC, Ogg, MP3 or AIFF")
            _check(name, rate, channels)
            first = round(start * rate)
            if 0 < first < frames:
                file.seek(first)
            most = min(round(LONGEST * rate), _MOST_SAMPLES // channels)
            samples = np.asarray(file.read(most, dtype="float32", always_2d=True), np.float32)
    except (soundfile.SoundFileError, OSError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, UnusableSound):
            raise
        # The library's own sentence, without the object that it read from.
        reason = str(getattr(error, "error_string", error)).rstrip(". ")
        what = "is empty" if not head else f"can't be read as audio ({reason})"
        raise UnusableSound(f"{name} {what}; use WAV, FLAC, Ogg, MP3 or AIFF") from error
    return _present(samples[:0] if first >= frames else samples, name, start, frames / rate), rate, frames / rate


def _of_array(source: Any, rate: int | None, start: float) -> tuple[NDArray[np.float32], int, float]:
    if not hasattr(source, "__array__"):
        raise UnusableSound(f"audio must be a path, a file's bytes or an array; got {type(source).__name__}")
    if not isinstance(rate, int):
        raise UnusableSound(f"an array needs rate=, a whole number of samples per second; got {rate!r}")
    numbers = array_of(source, "audio", UnusableSound)
    if numbers.ndim not in (1, 2):
        raise UnusableSound(f"an audio array must be (sample,) or (sample, channel); got {numbers.shape}")
    if numbers.dtype.kind == "i":
        numbers = numbers / float(np.iinfo(numbers.dtype).max)
    elif numbers.dtype.kind != "f":
        raise UnusableSound(f"samples must be floats from -1 to 1 or signed whole numbers; got {numbers.dtype}")
    samples = (numbers[:, None] if numbers.ndim == 1 else numbers).astype(np.float32)
    _check("the audio", rate, samples.shape[1])
    first = round(start * rate)
    part = samples[first : first + round(LONGEST * rate)]
    return _present(part, "the audio", start, len(samples) / rate), rate, len(samples) / rate


def _check(name: str, rate: int, channels: int) -> None:
    least, most = _RATES
    if not least <= rate <= most:
        raise UnusableSound(f"{name} has {rate:,} samples per second; use {least:,} to {most:,}")
    if not 1 <= channels <= _MOST_CHANNELS:
        raise UnusableSound(f"{name} has {channels} channels; use 1 to {_MOST_CHANNELS}")


def _present(samples: NDArray[np.float32], name: str, start: float, whole: float) -> NDArray[np.float32]:
    if not len(samples):
        fix = f"{whole:.2f} s long; use a start before that, not {start:g} s" if whole else "0 s long; use longer audio"
        raise UnusableSound(f"{name} is {fix}")
    if not bool(np.isfinite(samples).all()):
        raise UnusableSound(f"{name} has samples that aren't finite numbers; remove NaN and infinity")
    loudest = float(np.abs(samples).max())
    if loudest > 8:
        raise UnusableSound(f"{name} has samples up to {loudest:.3g}; scale them to -1 to 1")
    return samples


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)
