"""A task with an image of shapes: which question was asked, by where its words look."""

from collections.abc import Sequence

from attention_viz.inputs.media.shapes import DRAWN, Shape
from attention_viz.lesson.answering import HEAD, PLACES, SHAPES_MODEL, PictureAnswer, questions
from attention_viz.lesson.exercise import Exercise, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import Draw, table
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import listed

_WORDINGS = ("what colour is the {} ?", "where is the {} ?")
# The rows of the words before the shape's name, and of the last one: the name's own would give it away.
_EARLIER, _DIGITS, _FEWEST = ("is", "the"), 3, 3


def asked(scene: Scene, seed: int) -> Exercise:
    """Ask which question was asked, by the rows of its words."""
    draw = Draw("asked", seed, SHAPES_MODEL)
    many = [sample for sample in DRAWN if len(questions(sample, "{}")) >= _FEWEST]
    options = questions(draw.pick(many), draw.pick(_WORDINGS))
    shapes = [one.shape for one in options]
    # No word before the shape's name knows it, so its row is the same in all of them.
    early = _on_shapes(PictureAnswer(scene, options[0]), shapes, _EARLIER[-1])
    right = draw.pick([at for at in range(len(options)) if at != early.index(max(early))])
    run = PictureAnswer(scene, options[right])
    words = (*_EARLIER, run.words[max(run.words)])
    names = [translate("“{word}”", word=word) for word in words]
    rows = [_on_shapes(run, shapes, word) for word in words]
    numbers = [[round(number, _DIGITS) for number in (*row, max(0.0, 1 - sum(row)))] for row in rows]
    columns = (*(translate(one.place) for one in shapes), translate("rest"))
    *before, last = [max(range(len(shapes)), key=row.__getitem__) for row in numbers]
    found, (layer, head) = shapes[last], HEAD
    return Exercise(
        "asked",
        translate(
            "The toy “{model}” reads an image with {shapes}. The table has the weights of some words of the "
            "question in layer {layer}, head {head}. Which question was asked?",
            model=SHAPES_MODEL,
            shapes=listed([*map(_described, shapes)]),
            layer=layer,
            head=head,
        ),
        (table(translate("Weights, added up over places of the image"), names, columns, numbers),),
        OptionAnswer(tuple(one.text for one in options), frozenset((right,))),
        (
            translate("The model reads from left to right: only words after the shape's name can know it."),
            translate("{word} comes last, just before the answer.", word=names[-1]),
            translate(
                "{word} puts {weight} on the {place}.",
                word=names[-1],
                weight=written(numbers[-1][last]),
                place=translate(found.place),
            ),
        ),
        translate(
            "{word} puts {weight} on the {place}, on the {shape}; the question is “{question}”.",
            word=names[-1],
            weight=written(numbers[-1][last]),
            place=translate(found.place),
            shape=translate(found.words),
            question=options[last].text,
        ),
        tuple(Slip(at, _mistake(names, before, at)) for at in range(len(shapes)) if at != last),
    )


def _described(one: Shape) -> str:
    return translate("a {shape} at the {place}", shape=translate(one.words), place=translate(one.place))


def _on_shapes(run: PictureAnswer, shapes: Sequence[Shape], word: str) -> list[float]:
    """Return a word's weight on the place of each shape."""
    found = run.on_places(next(at for at, one in run.words.items() if one == word))
    return [found[PLACES.index(one.place)] for one in shapes]


def _mistake(names: Sequence[str], before: Sequence[int], at: int) -> str:
    """Explain a wrong shape: an earlier word looks there, or none does."""
    if at not in before:
        return translate("no word in the table has most of its weight on that shape.")
    return translate(
        "{word} looks there, but it comes before the shape's name, so it can't know which it is.",
        word=names[before.index(at)],
    )
