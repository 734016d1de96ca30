"""Drawn shapes: what is where in the pixels, and the samples that ship."""

import numpy as np
import pytest

import attention_viz as av
from attention_viz.inputs.media.shapes import COLOURS, COLUMNS, DRAWN, ROWS, SHAPES, Shape, coverage, draw_shapes
from attention_viz.inputs.media.shipped import SAMPLES

# How much of its box a shape covers, by geometry; a triangle's box is 2 × 1.8, a square's 1.8 × 1.8.
AREAS = {
    "circle": np.pi,
    "ring": 0.7 * np.pi,
    "square": 1.8**2,
    "diamond": 2.0,
    "triangle": 0.5 * 2 * 1.8,
    "cross": 2 * (2 * 0.66) - 0.66**2,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_covers_the_area_that_geometry_gives_it(name: str) -> None:
    covered = coverage(Shape("red", name, "middle", "centre", radius=9))
    assert covered.sum() == pytest.approx(81 * AREAS[name], rel=0.03)


@pytest.mark.parametrize(("row", "column"), [(row, column) for row in ROWS for column in COLUMNS])
def test_a_shape_stays_in_its_place_and_has_its_colour(row: str, column: str) -> None:
    for shift in ((-1.5, -1.5), (1.5, 1.5)):
        pixels = draw_shapes([Shape("blue", "circle", row, column, 9, shift)]).pixels
        assert pixels.shape == (64, 64, 3)
        rows, columns = (pixels != pixels.max((0, 1))).any(-1).nonzero()
        middle = (int(np.median(rows)), int(np.median(columns)))
        assert [int(at * 3 / 64) for at in middle] == [ROWS.index(row), COLUMNS.index(column)]
        assert tuple(pixels[middle]) == COLOURS["blue"]
        assert np.ptp(rows) <= 18 and np.ptp(columns) <= 18


def test_shapes_side_by_side_don_t_touch() -> None:
    ((left, right), (top, bottom)) = (
        [Shape("red", "circle", row, column, 9, shift) for (row, column), shift in pairs]
        for pairs in (
            ((("top", "left"), (1.5, 0.0)), (("top", "centre"), (-1.5, 0.0))),
            ((("top", "left"), (0.0, 1.5)), (("middle", "left"), (0.0, -1.5))),
        )
    )
    assert not ((coverage(left) > 0) & (coverage(right) > 0)).any()
    assert not ((coverage(top) > 0) & (coverage(bottom) > 0)).any()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"colour": "pink"}, "unknown colour 'pink'; choose red"),
        ({"shape": "star"}, "unknown shape 'star'; choose circle"),
        ({"row": "left"}, "unknown row 'left'; choose top, middle, bottom"),
        ({"column": "middle"}, "unknown column 'middle'; choose left, centre, right"),
        ({"radius": 10}, "radius must be above 0 and at most 9"),
        ({"shift": (0.0, 3.0)}, "shift from −1.5 to 1.5"),
    ],
)
def test_an_impossible_shape_is_refused_by_name(changed: dict[str, object], message: str) -> None:
    given = {"colour": "red", "shape": "circle", "row": "top", "column": "left"} | changed
    with pytest.raises(ValueError, match=message):
        Shape(**given)  # pyright: ignore[reportArgumentType]


def test_two_shapes_in_one_place_are_refused() -> None:
    with pytest.raises(ValueError, match="2 shapes are top left"):
        draw_shapes([Shape("red", "circle", "top", "left"), Shape("blue", "ring", "top", "left")])


def test_the_samples_that_ship_are_drawn_from_their_shapes() -> None:
    assert DRAWN.keys() == {name for name, sample in SAMPLES.items() if sample.file.startswith("shapes-")}
    for name, shapes in DRAWN.items():
        assert np.array_equal(av.Picture(SAMPLES[name].path).pixels, draw_shapes(shapes).pixels)
