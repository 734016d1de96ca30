"""A sample picture, and the class token's strongest head."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from attention_viz.analysis.slides import ShownPicture, picture_shown
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.scene import Scene
from attention_viz.trace.kind import InputKind
from attention_viz.trace.once import once_for_each
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.seen.overlay import over_patches, touching

__all__ = ["MODEL", "PICTURES", "PictureRun"]

MODEL = "dinov2-small"
# The samples, by their names: what each shows.
PICTURES = {name: one.shows for name, one in SAMPLES.items() if one.kind == InputKind.PICTURE}
_CLASS, _FEWEST = 0, 2


@once_for_each
def _place(trace: Trace) -> tuple[int, int]:
    places = [
        (layer, head) for layer in trace.layer_numbers(trace.stream(None)) for head in range(trace.head_count(layer))
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
    """One sample and its head."""

    def __init__(self, scene: Scene, sample: str) -> None:
        """RunText it."""
        self.sample, self.trace = sample, scene.run(MODEL, sample)

    @cached_property
    def place(self) -> tuple[int, int]:
        """Return layer and head with the class token's strongest region."""
        return _place(self.trace)

    @property
    def tokens(self) -> Tokens:
        """The class token and the patches."""
        return self.trace.key_tokens()

    @cached_property
    def weights(self) -> Float[np.ndarray, "row column"]:
        """Return the class token's weight on each patch in that head."""
        return _given(self.trace, self.place)

    @cached_property
    def itself(self) -> float:
        """What the class token keeps for itself."""
        return float(self.trace.weights(*self.place)[_CLASS, _CLASS])

    @cached_property
    def region(self) -> Bool[np.ndarray, "row column"]:
        """The patches that it looks at together."""
        return touching(self.weights)

    @property
    def share(self) -> float:
        """What they are given."""
        return float(self.weights[self.region].sum())

    @property
    def part(self) -> float:
        """Which part of the picture they are."""
        return float(self.region.mean())

    def shown(self, boxes: Sequence[tuple[int, int]], count: int) -> ShownPicture | None:
        """Return the picture for a class, with weights and framed boxes (row, column from 0)."""
        row = self.trace.weights(*self.place)[_CLASS].detach().double().cpu()
        shown = picture_shown(self.trace, self.tokens, row, None, None)
        down, across = (size // count for size in self.weights.shape)
        framed = tuple((row * down, column * across, down, across) for row, column in boxes)
        return None if shown is None else replace(shown, boxes=framed)

    def boxes(self, down: int, across: int) -> Float[np.ndarray, "box_row box_column"]:
        """Sum the weights in boxes of equal size."""
        rows = np.array_split(self.weights, down, axis=0)
        return np.array([[box.sum() for box in np.array_split(row, across, axis=1)] for row in rows])
