"""The sample sound: its words, their times, and its best head."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from attention_viz.analysis.word_times import said_words, word_times
from attention_viz.lesson.scene import Scene
from attention_viz.trace.once import once_for_each
from attention_viz.trace.trace import Trace

__all__ = ["MODEL", "SAMPLE", "SoundRun"]

MODEL, SAMPLE = "whisper-tiny.en", "window"
_STREAM = "cross"


@dataclass(frozen=True)
class _Writer:
    name: str = MODEL


@once_for_each
def _place(trace: Trace) -> tuple[int, int]:
    table, found = word_times(_Writer(), trace), list[tuple[float, tuple[int, int]]]()
    begins = _begins(trace)
    for layer, head, _ in table.attrs["heads"]:
        rows = _rows(trace, int(layer), int(head))
        times = zip(table["start"], table["end"], strict=True)
        own = [row[(begins >= start) & (begins < end)].sum() for row, (start, end) in zip(rows, times, strict=True)]
        found.append((float(np.mean(own)), (int(layer), int(head))))
    return max(found)[1]


def _rows(trace: Trace, layer: int, head: int) -> Float[np.ndarray, "word frame"]:
    weights = trace.weights(layer, head, _STREAM).detach().double().cpu().numpy()
    return np.stack([weights[list(rows)].mean(axis=0) for _, rows in said_words(trace)])


def _begins(trace: Trace) -> Float[np.ndarray, " frame"]:
    tokens = trace.key_tokens(_STREAM)
    return np.array([tokens.frames.get(at, np.inf) for at in range(len(tokens))])


@once_for_each
def _times(trace: Trace) -> tuple[tuple[float, float], ...]:
    table = word_times(_Writer(), trace)
    return tuple(zip(table["start"].tolist(), table["end"].tolist(), strict=True))


class SoundRun:
    """The run of the sample."""

    name = MODEL

    def __init__(self, scene: Scene) -> None:
        """RunText it."""
        self.trace: Trace = scene.run(MODEL, SAMPLE)

    @cached_property
    def place(self) -> tuple[int, int]:
        """Return the timing head (layer, head) with most weight in the words' own times."""
        return _place(self.trace)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What is said, word by word."""
        return tuple(word for word, _ in said_words(self.trace))

    @cached_property
    def times(self) -> tuple[tuple[float, float], ...]:
        """When each word begins and ends."""
        return _times(self.trace)

    @cached_property
    def seconds(self) -> float:
        """How long the sound is."""
        sound = self.trace.seen.sound
        assert sound is not None, "the sample is a sound"
        return len(sound) / self.trace.seen.rate

    @cached_property
    def rows(self) -> Float[np.ndarray, "word frame"]:
        """Return each word's weights in that head, over all frames with the final silence."""
        return _rows(self.trace, *self.place)

    @property
    def begins(self) -> Float[np.ndarray, " frame"]:
        """When each frame begins."""
        return _begins(self.trace)

    def during(self, word: int) -> Float[np.ndarray, " word"]:
        """Return a word's weight on each word's time."""
        inside = [(self.begins >= start) & (self.begins < end) for start, end in self.times]
        return np.array([self.rows[word][one].sum() for one in inside])
