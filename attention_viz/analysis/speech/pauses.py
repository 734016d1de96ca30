"""Pauses of a sound by its loudness."""

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["FEWEST_SECONDS", "pauses"]

# A shorter silence may be part of a word, such as before a "t".
FEWEST_SECONDS = 0.3
# Decibels below speech at which a frame is silent for certain; above the quietest frames, at which it is no longer
# background noise; and the least distance from speech that noise needs to be told apart.
_SILENT, _OVER_NOISE, _LEAST = 35.0, 6.0, 15.0
# How loud speech is, by the frames of this many seconds that are loudest; a click is shorter.
_LOUDEST = 0.2
# Percentile of the frames that counts as background noise.
_NOISE = 5


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
