"""Draw the images that the model `shapes` reads: coloured shapes on a light ground."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attention_viz.inputs.media.picture import Picture

__all__ = [
    "CENTRES",
    "COLOURS",
    "COLUMNS",
    "DRAWN",
    "GROUND",
    "ROWS",
    "SHAPES",
    "SIDE",
    "Shape",
    "coverage",
    "draw_shapes",
]

# Width and height of an image, in pixels.
SIDE = 64
COLOURS = {
    "red": (214, 40, 40),
    "yellow": (246, 212, 44),
    "green": (46, 148, 68),
    "blue": (38, 92, 208),
    "purple": (142, 58, 178),
    "black": (34, 34, 34),
}
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")
ROWS = ("top", "middle", "bottom")
COLUMNS = ("left", "centre", "right")
GROUND = (240, 240, 236)
# The centres of three rows or columns, in pixels.
CENTRES = (10.5, 32.0, 53.5)
# Each pixel's coverage is the mean of this many points along each axis.
_POINTS = 4


@dataclass(frozen=True)
class Shape:
    """A coloured shape in one of nine places.

    Attributes:
        radius: half its width, in pixels; at most 9 keeps it apart from the next place.
        shift: how far its centre is from the middle of its place, right and down, in pixels; at most 1.5 each.
    """

    colour: str
    shape: str
    row: str
    column: str
    radius: float = 8.0
    shift: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the names."""
        for what, name, allowed in (
            ("colour", self.colour, COLOURS),
            ("shape", self.shape, SHAPES),
            ("row", self.row, ROWS),
            ("column", self.column, COLUMNS),
        ):
            if name not in allowed:
                raise ValueError(f"unknown {what} {name!r}; choose {', '.join(allowed)}")
        if not (0 < self.radius <= 9 and all(abs(one) <= 1.5 for one in self.shift)):
            raise ValueError(
                f"radius must be above 0 and at most 9, shift from −1.5 to 1.5; got {self.radius} and {self.shift}"
            )

    @property
    def place(self) -> str:
        """Its row and column, such as "top left"."""
        return f"{self.row} {self.column}"

    @property
    def words(self) -> str:
        """Its colour and shape, such as "red circle"."""
        return f"{self.colour} {self.shape}"


# The samples that ship, by name.
DRAWN = {
    "shapes-two": (Shape("red", "circle", "top", "left"), Shape("blue", "square", "bottom", "right")),
    "shapes-three": (
        Shape("yellow", "triangle", "top", "centre"),
        Shape("green", "ring", "middle", "left"),
        Shape("purple", "cross", "bottom", "right"),
    ),
    "shapes-alike": (
        Shape("black", "diamond", "top", "right"),
        Shape("black", "square", "middle", "left"),
        Shape("blue", "diamond", "bottom", "centre"),
    ),
    "shapes-four": (
        Shape("green", "square", "top", "left"),
        Shape("red", "ring", "top", "right"),
        Shape("yellow", "circle", "middle", "centre"),
        Shape("purple", "triangle", "bottom", "left"),
    ),
    "shapes-one": (Shape("blue", "cross", "middle", "right"),),
}


def draw_shapes(shapes: Iterable[Shape], name: str = "shapes") -> "Picture":
    """Draw shapes, each in a place of its own; equal shapes give equal pixels.

    Returns:
        An image of 64 × 64 pixels.

    Raises:
        ValueError: if two shapes have the same place.
    """
    from attention_viz.inputs.media.picture import Picture

    shapes = list(shapes)
    if taken := [one.place for one in shapes if sum(one.place == other.place for other in shapes) > 1]:
        raise ValueError(f"{len(taken)} shapes are {taken[0]}; draw at most one per place")
    pixels = np.broadcast_to(np.array(GROUND, np.float64), (SIDE, SIDE, 3))
    for shape in shapes:
        share = coverage(shape)[..., None]
        pixels = pixels + share * (np.array(COLOURS[shape.colour], np.float64) - pixels)
    picture = Picture(np.round(pixels).astype(np.uint8))
    picture.name = name
    return picture


def coverage(shape: Shape) -> NDArray[np.float64]:
    """Return the share of each pixel that a shape covers, (row, column)."""
    across, down = (
        CENTRES[names.index(name)] + shift
        for names, name, shift in zip((COLUMNS, ROWS), (shape.column, shape.row), shape.shift, strict=True)
    )
    left, top = (max(0, int(np.floor(centre - shape.radius))) for centre in (across, down))
    right, bottom = (min(SIDE, int(np.ceil(centre + shape.radius))) for centre in (across, down))
    x = (left + _steps(right - left) - across) / shape.radius
    y = (top + _steps(bottom - top) - down) / shape.radius
    inside = _inside(shape.shape, x[None, :], y[:, None])
    covered = np.zeros((SIDE, SIDE))
    covered[top:bottom, left:right] = inside.reshape(bottom - top, _POINTS, right - left, _POINTS).mean((1, 3))
    return covered


def _steps(pixels: int) -> NDArray[np.float64]:
    return (np.arange(pixels * _POINTS) + 0.5) / _POINTS


def _inside(name: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points a shape covers; it reaches from −1 to 1, right and down."""
    if name == "circle":
        return x * x + y * y <= 1
    if name == "ring":
        return (x * x + y * y <= 1) & (x * x + y * y >= 0.3)
    if name == "square":
        return np.maximum(abs(x), abs(y)) <= 0.9
    if name == "diamond":
        return abs(x) + abs(y) <= 1
    if name == "triangle":
        return (abs(x) <= (y + 0.9) / 1.8) & (y <= 0.9)
    return (np.minimum(abs(x), abs(y)) <= 0.33) & (np.maximum(abs(x), abs(y)) <= 1)
