"""Tasks with audio and an image: a word's start, the class token's weight on a region."""

import itertools
from collections.abc import Sequence

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import PICTURE_MODEL, PICTURES, SOUND_MODEL, PictureRun, SoundRun
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, table
from attention_viz.lesson.translation import translate

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
    names = tuple(translate("“{word}”", word=heard.words[at]) for at in (first, first + 1))
    columns = tuple(f"{edge:.2f}" for edge in edges[:-1])
    begins = tuple(f"{second} s" for second in columns)
    gains = [round((sum(rows[0][:at]) + sum(rows[1][at:])), _DIGITS) for at in range(1, _PARTS)]
    most = max(gains)
    right = frozenset(at for at, gain in enumerate(gains) if gain == most)
    slips = _stretch_slips(rows[1], names)
    found = min(right)
    return Exercise(
        "stretch",
        translate(
            "{model} writes {word} and then {other}. The table has the weights of layer {layer}, head "
            "{head} on six moments, before each word is written. All moments up to some point belong to "
            "{word}, all others to {other}. When does {other} begin, if each word’s own part is to have as "
            "much weight as possible?",
            model=SOUND_MODEL,
            word=names[0],
            other=names[1],
            layer=layer,
            head=head,
        ),
        (table(translate("Weights, by the start of each moment in seconds"), names, columns, rows),),
        OptionAnswer(begins[1:], right),
        (
            translate(
                "For each point, add the weights of {word} before it and those of {other} from it on.",
                word=names[0],
                other=names[1],
            ),
            translate("With {time} the sum is {sum}.", time=begins[1], sum=written(gains[0])),
            translate("The largest sum is {sum}.", sum=written(most)),
        ),
        translate(
            "With {time} the sum is {sum}; the others have {others}.",
            time=begins[found + 1],
            sum=written(most),
            others=", ".join(written(gain) for at, gain in enumerate(gains) if at not in right) or translate("as much"),
        ),
        tuple(Slip(at, words) for at, words in slips.items() if at not in right),
    )


def _stretch_slips(row: Sequence[float], names: Sequence[str]) -> dict[int, str]:
    """Explain wrong options: the second word's largest weight, and the middle."""
    word, other = names
    return {
        max(range(1, _PARTS), key=row.__getitem__) - 1: translate(
            "{other} has its largest weight there, but the loss of {word} counts, too.", other=other, word=word
        ),
        _PARTS // 2 - 1: translate("that is the middle of the time; the weights say otherwise."),
    }


def region(scene: Scene, seed: int) -> Exercise:
    """Ask for the class token's weight on some places."""
    draw = Draw("region", seed, PICTURE_MODEL)
    looked = PictureRun(scene, draw.pick(tuple(PICTURES)))
    layer, head = looked.place
    numbers = [[round(float(one), _DIGITS_SEEING) for one in row] for row in looked.boxes(_BOXES, _BOXES)]
    names = tuple(translate("row {number}", number=number) for number in range(1, _BOXES + 1))
    columns = tuple(translate("column {number}", number=number) for number in range(1, _BOXES + 1))
    count = _FEWEST + draw.below(_MOST - _FEWEST + 1)
    places = sorted(draw.order([(row, column) for row in range(_BOXES) for column in range(_BOXES)])[:count])
    chosen = [numbers[row][column] for row, column in places]
    right = round(sum(chosen), _DIGITS_SEEING)
    phrase = ", ".join(translate("row {row} column {column}", row=row + 1, column=column + 1) for row, column in places)
    return Exercise(
        "region",
        translate(
            "{model} reads an image of {picture}. In layer {layer}, head {head}, how much weight does [CLS] put on "
            "these places, each of {side} × {side} patches, together: {boxes}?",
            model=PICTURE_MODEL,
            picture=translate(PICTURES[looked.sample]),
            layer=layer,
            head=head,
            side=looked.weights.shape[0] // _BOXES,
            boxes=phrase,
        ),
        (table(translate("Weights of [CLS], added up over places of 4 × 4 patches"), names, columns, numbers),),
        NumberAnswer(right, ROUNDED),
        (
            translate("The weights of a row are shares of 1. Shares of places that don’t overlap add up."),
            translate("There are {count} numbers to add.", count=count),
            translate("They are {numbers}.", numbers=", ".join(map(written, chosen))),
        ),
        f"{' + '.join(map(written, chosen))} = {written(right)}.",
        (
            Slip(
                round(count / _BOXES**2, _DIGITS_SEEING),
                translate("that is their part of the image; [CLS] doesn’t look evenly."),
            ),
            Slip(round(right / count, _DIGITS_SEEING), translate("that is the mean of the places; add them up.")),
        ),
        seen=looked.shown(places, _BOXES),
    )
