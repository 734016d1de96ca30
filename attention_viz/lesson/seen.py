"""The lessons' samples: audio with word times, and an image with its class token's head."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from attention_viz.analysis.slides import ShownPicture, picture_shown
from attention_viz.analysis.word_times import said_words, word_times
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.scene import Scene
from attention_viz.trace.kind import InputKind
from attention_viz.trace.once import once_for_each
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.seen import over_patches, touching

SOUND_MODEL, SAMPLE = "whisper-tiny.en", "window"
_STREAM = "cross"
PICTURE_MODEL = "dinov2-small"
# What each sample shows, by its name.
PICTURES = {name: one.shows for name, one in SAMPLES.items() if one.kind == InputKind.PICTURE}
_CLASS, _FEWEST = 0, 2


@dataclass(frozen=True)
class _Writer:
    name: str = SOUND_MODEL


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
    """The audio sample's run."""

    name = SOUND_MODEL

    def __init__(self, scene: Scene) -> None:
        """Run the sample."""
        self.trace: Trace = scene.run(SOUND_MODEL, SAMPLE)

    @cached_property
    def place(self) -> tuple[int, int]:
        """The timing head (layer, head) with most weight in the words' own times."""
        return _place(self.trace)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The transcript, word by word."""
        return tuple(word for word, _ in said_words(self.trace))

    @cached_property
    def times(self) -> tuple[tuple[float, float], ...]:
        """Each word's start and end."""
        return _times(self.trace)

    @cached_property
    def seconds(self) -> float:
        """The audio's duration."""
        sound = self.trace.seen.sound
        assert sound is not None, "the sample is a sound"
        return len(sound) / self.trace.seen.rate

    @cached_property
    def rows(self) -> Float[np.ndarray, "word frame"]:
        """Each word's weights in that head, over all frames to the end."""
        return _rows(self.trace, *self.place)

    @property
    def begins(self) -> Float[np.ndarray, " frame"]:
        """Each frame's start."""
        return _begins(self.trace)

    def within(self, word: int, edges: Sequence[float]) -> list[float]:
        """Return a word's weight between each two neighbours of some times in seconds."""
        parts = [(self.begins >= start) & (self.begins < end) for start, end in pairwise(edges)]
        return [float(self.rows[word][part].sum()) for part in parts]

    def during(self, word: int) -> Float[np.ndarray, " word"]:
        """Return a word's weight on each word's time."""
        inside = [(self.begins >= start) & (self.begins < end) for start, end in self.times]
        return np.array([self.rows[word][one].sum() for one in inside])


@once_for_each
def _picture_place(trace: Trace) -> tuple[int, int]:
    places = [
        (layer, head)
        for layer in trace.layer_numbers(trace.attention_stream(None))
        for head in range(trace.head_count(layer))
    ]
    return max(places, key=lambda place: _gathered(trace, place))


def _gathered(trace: Trace, place: tuple[int, int]) -> float:
    """Return the weight on two patches or more, minus an even look's."""
    weights = _given(trace, place)
    region = touching(weights)
    return float(weights[region].sum() - region.mean()) if region.sum() >= _FEWEST else 0.0


def _given(trace: Trace, place: tuple[int, int]) -> Float[np.ndarray, "row column"]:
    layer, head = place
    row = trace.attention(layer).rows([_CLASS]).head(head).weights[0].detach().double().cpu().numpy()
    return over_patches(row, trace.key_tokens())


class PictureRun:
    """The image sample's run and a head."""

    def __init__(self, scene: Scene, sample: str) -> None:
        """Run the sample."""
        self.sample, self.trace = sample, scene.run(PICTURE_MODEL, sample)

    @cached_property
    def place(self) -> tuple[int, int]:
        """The head (layer, head) with the class token's strongest region."""
        return _picture_place(self.trace)

    @property
    def tokens(self) -> Tokens:
        """The class token and the patches."""
        return self.trace.key_tokens()

    @cached_property
    def weights(self) -> Float[np.ndarray, "row column"]:
        """The class token's weight on each patch in that head."""
        return _given(self.trace, self.place)

    @cached_property
    def itself(self) -> float:
        """The class token's weight on itself."""
        return float(self.trace.weights(*self.place)[_CLASS, _CLASS])

    @cached_property
    def region(self) -> Bool[np.ndarray, "row column"]:
        """The connected patches that it attends to."""
        return touching(self.weights)

    @property
    def share(self) -> float:
        """The region's total weight."""
        return float(self.weights[self.region].sum())

    @property
    def part(self) -> float:
        """The region's share of the image."""
        return float(self.region.mean())

    def shown(self, boxes: Sequence[tuple[int, int]], count: int) -> ShownPicture | None:
        """Return the figure for a class, with weights and framed boxes (row, column from 0)."""
        row = self.trace.weights(*self.place)[_CLASS].detach().double().cpu()
        shown = picture_shown(self.trace, self.tokens, row, None, None)
        down, across = (size // count for size in self.weights.shape)
        framed = tuple((row * down, column * across, down, across) for row, column in boxes)
        return None if shown is None else replace(shown, boxes=framed)

    def boxes(self, down: int, across: int) -> Float[np.ndarray, "box_row box_column"]:
        """Sum the weights in boxes of equal size."""
        rows = np.array_split(self.weights, down, axis=0)
        return np.array([[box.sum() for box in np.array_split(row, across, axis=1)] for row in rows])
