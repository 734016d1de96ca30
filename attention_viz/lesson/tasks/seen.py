"""Tasks with audio and an image: a word's start, the class token's weight on a region."""

import itertools

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import PICTURE_MODEL, PICTURES, SOUND_MODEL, PictureRun, SoundRun
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, table

_DIGITS, _PARTS = 2, 6
_BOXES, _DIGITS_SEEING = 4, 3
# How many boxes are asked about.
_FEWEST, _MOST = 2, 4


def stretch(scene: Scene, seed: int) -> Exercise:
    """Ask for the second word's start that keeps most weight in both words' stretches."""
    draw, heard = Draw("stretch", seed, SOUND_MODEL), SoundRun(scene)
    layer, head = heard.place
    first = draw.below(len(heard.words) - 1)
    (start, _), (_, end) = heard.times[first], heard.times[first + 1]
    edges = [start + (end - start) * at / _PARTS for at in range(_PARTS + 1)]
    rows = [
        [
            round(float(heard.rows[word][(heard.begins >= low) & (heard.begins < high)].sum()), _DIGITS)
            for low, high in itertools.pairwise(edges)
        ]
        for word in (first, first + 1)
    ]
    names = tuple(f"“{heard.words[word]}”" for word in (first, first + 1))
    columns = tuple(f"{edge:.2f}" for edge in edges[:-1])
    begins = tuple(f"{second} s" for second in columns)
    gains = [round((sum(rows[0][:at]) + sum(rows[1][at:])), _DIGITS) for at in range(1, _PARTS)]
    most = max(gains)
    right = frozenset(at for at, gain in enumerate(gains) if gain == most)
    heaviest = max(range(1, _PARTS), key=lambda at: rows[1][at]) - 1
    middle = _PARTS // 2 - 1
    found = min(right)
    return Exercise(
        "stretch",
        f"{SOUND_MODEL} writes {names[0]} and then {names[1]}. The table has the weights of layer {layer}, "
        f"head {head} on six moments, before each word is written. All moments up to some point belong to {names[0]}, "
        f"all others to {names[1]}. When does {names[1]} begin, if each word’s own part is to have as much weight as "
        "possible?",
        (table("Weights, by the start of each moment in seconds", names, columns, rows),),
        OptionAnswer(begins[1:], right),
        (
            f"For each point, add the weights of {names[0]} before it and those of {names[1]} from it on.",
            f"With {begins[1]} the sum is {written(gains[0])}.",
            f"The largest sum is {written(most)}.",
        ),
        f"With {begins[found + 1]} the sum is {written(most)}; the others have "
        f"{', '.join(written(gain) for at, gain in enumerate(gains) if at not in right) or 'as much'}.",
        tuple(
            Slip(at, words)
            for at, words in {
                heaviest: f"{names[1]} has its largest weight there, but the loss of {names[0]} counts, too.",
                middle: "that is the middle of the time; the weights say otherwise.",
            }.items()
            if at not in right
        ),
    )


def region(scene: Scene, seed: int) -> Exercise:
    """Ask for the class token's weight on some rows of boxes."""
    draw = Draw("region", seed, PICTURE_MODEL)
    looked = PictureRun(scene, draw.pick(tuple(PICTURES)))
    layer, head = looked.place
    numbers = [[round(float(one), _DIGITS_SEEING) for one in row] for row in looked.boxes(_BOXES, _BOXES)]
    names = tuple(f"row {number}" for number in range(1, _BOXES + 1))
    columns = tuple(f"column {number}" for number in range(1, _BOXES + 1))
    count = _FEWEST + draw.below(_MOST - _FEWEST + 1)
    places = sorted(draw.order([(row, column) for row in range(_BOXES) for column in range(_BOXES)])[:count])
    chosen = [numbers[row][column] for row, column in places]
    right = round(sum(chosen), _DIGITS_SEEING)
    phrase = ", ".join(f"row {row + 1} column {column + 1}" for row, column in places)
    return Exercise(
        "region",
        f"{PICTURE_MODEL} reads an image of {PICTURES[looked.sample]}. In layer {layer}, head {head}, how much weight "
        f"does the class token put on these boxes together: {phrase}?",
        (table("The class token’s weights, added up over boxes of 4 × 4 patches", names, columns, numbers),),
        NumberAnswer(right, ROUNDED),
        (
            "The weights of a row are shares of 1. Shares of places that don’t overlap add up.",
            f"There are {count} numbers to add.",
            f"They are {', '.join(map(written, chosen))}.",
        ),
        f"{' + '.join(map(written, chosen))} = {written(right)}.",
        (
            Slip(
                round(count / _BOXES**2, _DIGITS_SEEING),
                "that is their part of the image; the class token doesn’t look evenly.",
            ),
            Slip(round(right / count, _DIGITS_SEEING), "that is the mean of the boxes; add them up."),
        ),
        seen=looked.shown(places, _BOXES),
    )
