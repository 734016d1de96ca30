"""Name a drawing by its shapes, such as "drawn.red-circle-top-left", and read such names."""

from collections.abc import Iterable

from attention_viz.errors import UnusablePicture
from attention_viz.inputs.media.shapes import COLUMNS, ROWS, Shape

__all__ = ["EXAMPLE", "MOST_SHAPES", "is_drawn", "name_of", "shapes_of", "shows"]

# The most shapes of an image that the model `shapes` was trained on.
MOST_SHAPES = 4
EXAMPLE = "drawn.red-circle-top-left.blue-square-bottom-right"
_FIRST = "drawn."
# The longest name of four shapes has fewer characters.
_LONGEST = 200


def is_drawn(name: str) -> bool:
    """Return whether a name is meant as a drawing's."""
    return name.startswith(_FIRST)


def name_of(shapes: Iterable[Shape]) -> str:
    """Return a drawing's name, its shapes in reading order; size and shift aren't part of it."""
    parts = (f"{one.colour}-{one.shape}-{one.row}-{one.column}" for one in sorted(shapes, key=_in_reading_order))
    return _FIRST + ".".join(parts)


def shapes_of(name: str) -> tuple[Shape, ...]:
    """Return the shapes of a name, in reading order.

    Raises:
        UnusablePicture: a shape is unknown, two share a place or a look, or there are none or too many.
    """
    parts = name[:_LONGEST].removeprefix(_FIRST).split(".")
    if len(name) > _LONGEST or len(parts) > MOST_SHAPES:
        raise UnusablePicture(f"the drawing has more than {MOST_SHAPES} shapes; draw 1 to {MOST_SHAPES}")
    shapes = sorted(map(_shape, parts), key=_in_reading_order)
    for what in ("place", "words"):
        found = [getattr(one, what) for one in shapes]
        if (twice := next((one for one in found if found.count(one) > 1), None)) is not None:
            named = f"two shapes are {twice}" if what == "place" else f"there are two {twice}s"
            raise UnusablePicture(f"{named}; give each shape a place and a look of its own")
    return tuple(shapes)


def shows(shapes: Iterable[Shape]) -> str:
    """Return a drawing's words, such as "a red circle, a blue square"."""
    return ", ".join(f"a {one.words}" for one in shapes)


def _shape(part: str) -> Shape:
    words = part.split("-")
    if len(words) != 4:
        raise UnusablePicture(f"can't read the shape {part!r}; write colour, shape, row and column, as in {EXAMPLE}")
    colour, shape, row, column = words
    try:
        return Shape(colour, shape, row, column)
    except ValueError as error:
        raise UnusablePicture(str(error)) from error


def _in_reading_order(shape: Shape) -> tuple[int, int]:
    return ROWS.index(shape.row), COLUMNS.index(shape.column)
