"""Mel spectrogram of a sound: 80 bands, 100 frames a second."""

import functools

import numpy as np
from jaxtyping import Float

__all__ = ["BANDS", "STEP", "spectrogram"]

# Of samples: how many are heard at once, and how many come from one column to the next; how many bands there are.
_WINDOW, STEP, BANDS = 400, 160, 80
# Below 1,000 Hz bands are as wide as each other, above they widen in proportion: Slaney's scale.
_LINEAR, _PER_BAND, _LOG_STEP = 1000.0, 200.0 / 3, np.log(6.4) / 27
# What is less loud than the loudest by this power of ten counts as silent.
_RANGE = 8.0


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
