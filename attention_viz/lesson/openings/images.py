"""An opening on an image: press a place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attention_viz.analysis.slides import ShownPicture
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.translation import translate
from attention_viz.views.figures.seen import laid_over, png_data

__all__ = ["ImagePlaces"]


@dataclass(frozen=True)
class ImagePlaces:
    """Places of an image, and options beside it; a guess is an option.

    Attributes:
        picture: its boxes are the first options, in order, row by row.
        names: of all options.
        across: boxes in a row.
        replies: one for each option.
        blocking: whether an option that is pressed after the answer is blocked.
    """

    kind: ClassVar[str] = "places"
    bars: ClassVar[bool] = False
    picture: ShownPicture
    names: tuple[str, ...]
    across: int
    replies: tuple[Reply, ...]
    blocking: bool = False

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Press the place in the image. The arrow keys move between places.")

    @property
    def numbers(self) -> tuple[int, int]:
        """One number: an option."""
        return 1, len(self.names) - 1

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return the option."""
        return numbers[0]

    def before(self) -> Mapping[str, object]:
        """Return the image as it is, and its boxes in shares of it: top, left, height, width."""
        down, across = self.picture.down, self.picture.across
        return {
            "image": self._image(np.ones((down, across))),
            "boxes": [
                [top / down, left / across, rows / down, columns / across]
                for top, left, rows, columns in self.picture.boxes
            ],
            "across": self.across,
            "label": translate("Places of the image"),
            "press": translate("block or unblock") if self.blocking else "",
        }

    def after(self) -> Mapping[str, object]:
        """Return the image lit by the weights, and which boxes are blocked."""
        down, across = self.picture.down, self.picture.across
        weights = np.array([one or 0.0 for one in self.picture.weights]).reshape(down, across)
        blocked = [at for at, one in enumerate(self.picture.weights) if one is None]
        return {
            "image": self._image(weights),
            "blocked": [top * across + left in blocked for top, left, _, _ in self.picture.boxes],
        }

    def _image(self, lit: np.ndarray) -> str:
        image = self.picture.seen.picture
        assert image is not None, "the question is about an image"
        return png_data(laid_over(image.numpy(), lit, smooth=False))
