"""Speech: pauses, spectrograms, frames divided among words, and subtitles."""

import functools
import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    import pandas

# What a frame of a pause costs inside a word, and a frame of speech outside of one: more than any gain, so that neither
# happens unless nothing else is possible; the former more, since a pause may hold a cough that belongs to no word.
_IN_A_WORD, _OUTSIDE = -1e6, -1e3
_NONE = -1
# A shorter silence may be part of a word, such as before a "t".
FEWEST_SECONDS = 0.3
# Decibels below speech at which a frame is silent for certain; above the quietest frames, at which it is no longer
# background noise; and the least distance from speech that noise needs to be told apart.
_SILENT, _OVER_NOISE, _LEAST = 35.0, 6.0, 15.0
# How loud speech is, by the frames of this many seconds that are loudest; a click is shorter.
_LOUDEST = 0.2
# Percentile of the frames that counts as background noise.
_NOISE = 5
# Of samples: how many are heard at once, and how many come from one column to the next; how many bands there are.
_WINDOW, STEP, BANDS = 400, 160, 80
# Below 1,000 Hz bands are as wide as each other, above they widen in proportion: Slaney's scale.
_LINEAR, _PER_BAND, _LOG_STEP = 1000.0, 200.0 / 3, np.log(6.4) / 27
# What is less loud than the loudest by this power of ten counts as silent.
_RANGE = 8.0


def divide(
    gain: Float[np.ndarray, "row frame"], opens: Sequence[bool], quiet: Bool[np.ndarray, " frame"]
) -> list[tuple[int, int]]:
    """Assign each token adjacent frames, in order, none empty, with the largest total gain.

    Only quiet frames between words belong to no token.

    Returns:
        First frame, and end (exclusive).
    """
    rows, frames = gain.shape
    # The states: tokens in their order, and before each word, and at the end, a pause that may be left out.
    states = [one for row in range(rows) for one in ([_NONE, row] if opens[row] else [row])] + [_NONE]
    worth = np.empty((frames, len(states)))
    for at, row in enumerate(states):
        if row == _NONE:
            worth[:, at] = np.where(quiet, 0.0, _OUTSIDE)
        elif row == rows - 1 and opens[row]:
            worth[:, at] = gain[row]
        else:
            worth[:, at] = np.where(quiet, _IN_A_WORD, gain[row])
    skips = np.array([at > 1 and states[at - 1] == _NONE for at in range(len(states))])
    path = _best_path(worth, skips, states)
    taken = [[frame for frame, at in enumerate(path) if states[at] == row] for row in range(rows)]
    return [(one[0], one[-1] + 1) for one in taken]


def _best_path(
    worth: Float[np.ndarray, "frame state"], skips: Bool[np.ndarray, " state"], states: list[int]
) -> list[int]:
    """Steps stay, advance, or skip a pause."""
    frames, count = worth.shape
    steps = np.zeros((frames, count), dtype=np.int8)
    best = np.full(count, -np.inf)
    for at in range(2 if states[0] == _NONE else 1):
        best[at] = worth[0, at]
    for frame in range(1, frames):
        ways = np.full((3, count), -np.inf)
        ways[0], ways[1, 1:], ways[2, 2:] = best, best[:-1], best[:-2]
        ways[2, ~skips] = -np.inf
        steps[frame] = ways.argmax(axis=0)
        best = ways.max(axis=0) + worth[frame]
    at = count - 1 if best[-1] > best[-2] else count - 2
    path = [at]
    for frame in range(frames - 1, 0, -1):
        at -= int(steps[frame, at])
        path.append(at)
    return path[::-1]


def pauses(
    samples: Float[np.ndarray, " sample"], rate: int, begins: Float[np.ndarray, " frame"]
) -> Bool[np.ndarray, " frame"]:
    """Return frames in a pause: 0.3 s or more of quiet frames.

    Quiet is 35 dB below speech; with noise, up to 6 dB above it, but at least 15 dB below speech.

    Args:
        begins: in seconds, rising evenly.
    """
    step = float(begins[1] - begins[0]) if len(begins) > 1 else len(samples) / rate
    levels = _levels(samples, rate, begins, step)
    speech = float(np.sort(levels)[-max(1, min(len(levels), round(_LOUDEST / step))) :].min())
    noise = max(float(np.percentile(levels, _NOISE)), speech - 2 * _SILENT)
    quiet = levels < max(speech - _SILENT, min(noise + _OVER_NOISE, speech - _LEAST))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(np.int8)))
    found = np.zeros(len(levels), dtype=bool)
    for first, after in zip(edges[::2], edges[1::2], strict=True):
        if (after - first) * step >= FEWEST_SECONDS:
            found[first:after] = True
    return found


def _levels(
    samples: Float[np.ndarray, " sample"], rate: int, begins: Float[np.ndarray, " frame"], step: float
) -> Float[np.ndarray, " frame"]:
    power = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    first = np.clip(np.round(begins * rate).astype(np.int64), 0, len(samples))
    after = np.clip(np.round((begins + step) * rate).astype(np.int64), 0, len(samples))
    mean = (power[after] - power[first]) / np.maximum(after - first, 1)
    return 10 * np.log10(np.maximum(mean, 1e-12))


def spectrogram(samples: Float[np.ndarray, " sample"], rate: int) -> Float[np.ndarray, "column band"]:
    """Return log band power, from 0 (80 dB below the loudest) to 1.

    Source: Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision", section 2.2: 80 mel
    bands, 25 ms windows, 10 ms apart, 16,000 samples a second.
    """
    padded = np.pad(samples.astype(np.float64), _WINDOW // 2, mode="reflect" if len(samples) > _WINDOW else "edge")
    starts = np.arange(max(1, len(samples) // STEP)) * STEP
    window = np.hanning(_WINDOW + 1)[:-1]
    frames = padded[starts[:, None] + np.arange(_WINDOW)] * window
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    loud = np.log10(np.maximum(power @ _bands(rate), 1e-10))
    most = loud.max()
    return (np.maximum(loud, most - _RANGE) - (most - _RANGE)) / _RANGE


@functools.cache
def _bands(rate: int) -> Float[np.ndarray, "frequency band"]:
    """Triangles of equal area."""
    edges = _to_hertz(np.linspace(_to_mel(0.0), _to_mel(rate / 2), BANDS + 2))
    frequencies = np.linspace(0, rate / 2, _WINDOW // 2 + 1)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])


def _to_mel(hertz: float) -> float:
    if hertz < _LINEAR:
        return hertz / _PER_BAND
    return float(_LINEAR / _PER_BAND + np.log(hertz / _LINEAR) / _LOG_STEP)


def _to_hertz(mel: Float[np.ndarray, " edge"]) -> Float[np.ndarray, " edge"]:
    first = _LINEAR / _PER_BAND
    return np.where(mel < first, mel * _PER_BAND, _LINEAR * np.exp(_LOG_STEP * (mel - first)))


def to_webvtt(times: "pandas.DataFrame") -> str:
    """Write a cue per timed word.

    Source: W3C, "WebVTT: The Web Video Text Tracks Format", section 4.
    """
    rows = zip(times["word"].tolist(), times["start"].tolist(), times["end"].tolist(), strict=True)
    cues = [
        f"{_stamp(start)} --> {_stamp(end)}\n{html.escape(' '.join(str(word).split()), quote=False)}\n"
        for word, start, end in rows
        if not math.isnan(start)
    ]
    return "\n".join(["WEBVTT\n", *cues])


def _stamp(second: float) -> str:
    thousandths = round(second * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}.{rest % 1000:03}"
