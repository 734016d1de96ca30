"""A task with a picture: the class token's weight on a part."""

from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen.looked import MODEL, PICTURES, PictureRun
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, table

__all__ = ["MODEL", "region"]

_BOXES, _DIGITS = 4, 3
# How many boxes are asked about.
_FEWEST, _MOST = 2, 4


def region(scene: Scene, seed: int) -> Exercise:
    """Ask for the class token's weight on some rows of boxes."""
    draw = Draw("region", seed, MODEL)
    looked = PictureRun(scene, draw.pick(tuple(PICTURES)))
    layer, head = looked.place
    numbers = [[round(float(one), _DIGITS) for one in row] for row in looked.boxes(_BOXES, _BOXES)]
    names = tuple(f"row {number}" for number in range(1, _BOXES + 1))
    columns = tuple(f"column {number}" for number in range(1, _BOXES + 1))
    count = _FEWEST + draw.below(_MOST - _FEWEST + 1)
    places = sorted(draw.order([(row, column) for row in range(_BOXES) for column in range(_BOXES)])[:count])
    chosen = [numbers[row][column] for row, column in places]
    right = round(sum(chosen), _DIGITS)
    phrase = ", ".join(f"row {row + 1} column {column + 1}" for row, column in places)
    return Exercise(
        "region",
        f"{MODEL} reads {PICTURES[looked.sample]}. In layer {layer}, head {head}, how much does the class token give "
        f"to these boxes together: {phrase}?",
        (table("The class token’s weights, added up over boxes of 4 × 4 patches", names, columns, numbers),),
        NumberAnswer(right, ROUNDED),
        (
            "A row of weights is shares of 1, and shares of places that don’t overlap add up.",
            f"There are {count} numbers to add.",
            f"They are {', '.join(map(written, chosen))}.",
        ),
        f"{' + '.join(map(written, chosen))} = {written(right)}.",
        (
            Slip(
                round(count / _BOXES**2, _DIGITS),
                "that is their part of the picture; the class token doesn’t look evenly.",
            ),
            Slip(round(right / count, _DIGITS), "that is the mean of the boxes; they are to be added up."),
        ),
        seen=looked.shown(places, _BOXES),
    )
