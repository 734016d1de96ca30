"""Tasks about the toy: a score's parts, and a head's additions to logits."""

from collections.abc import Sequence

from attention_viz.lesson.composed import TOY_WORDS, Composed, WrittenBy
from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, factor, products, table
from attention_viz.lesson.translation import translate

_DIGITS = 2
_DIGITS_WRITING = 2
# Words with less weight than this are taken together.
_SMALL = 0.02


def part(scene: Scene, seed: int) -> Exercise:
    """Ask for an earlier head's part of a score, from the rest."""
    draw = Draw("part", seed, TOY)
    words = draw.order(TOY_WORDS)
    pair = Composed(scene, draw.below(len(words) - 1), words=tuple(words))
    names = pair.trace.key_tokens().names
    (layer, head), (before_layer, before_head) = pair.reader, pair.writer
    asked = ("head", before_layer, before_head)
    others: dict[str, float] = {}
    for place, number in pair.parts.items():
        if place != asked:
            others[_called(*place)] = others.get(_called(*place), 0.0) + number
    rows = {name: round(number, _DIGITS) for name, number in others.items()}
    score = round(pair.opened.total, _DIGITS)
    rest = round(sum(rows.values()), _DIGITS)
    right = round(score - rest, _DIGITS)
    added = " + ".join(factor(number) for number in rows.values())
    return Exercise(
        "part",
        translate(
            "“{query}” comes again in “{words}”. Its score with “{key}” in layer {layer}, head {head} of "
            "the toy is {score}: the sum of the parts in the table and of the contribution of head "
            "{other_head} of layer {other_layer}. What did that head contribute?",
            query=names[pair.query],
            words=" ".join(words * 2),
            key=names[pair.key],
            layer=layer,
            head=head,
            score=written(score),
            other_head=before_head,
            other_layer=before_layer,
        ),
        (
            table(
                translate("Parts of the score"),
                [*rows],
                (translate("part"),),
                [[number] for number in rows.values()],
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            translate("All parts together are the score: one is missing."),
            translate("The parts in the table add up to {sum}.", sum=written(rest)),
            translate("Subtract {sum} from {score}.", sum=written(rest), score=written(score)),
        ),
        f"{written(score)} − ({added}) = {written(score)} − {factor(rest)} = {written(right)}.",
        (
            Slip(rest, translate("that is the sum of the other parts; subtract it from the score.")),
            Slip(round(score + rest, _DIGITS), translate("did you add the other parts to the score? Subtract them.")),
            Slip(score, translate("that is the whole score; the other parts contributed some of it.")),
        ),
    )


def _called(kind: str, layer: int | None, _head: int | None) -> str:
    if kind == "head":
        return translate("layer {layer}, its other heads", layer=layer)
    return {"embedding": translate("the word itself"), "mlp": translate("layer {layer}, MLP", layer=layer)}.get(
        kind, translate("all else")
    )


def added(scene: Scene, seed: int) -> Exercise:
    """Ask for a head's addition to a logit, from weights and each source's addition."""
    draw = Draw("added", seed, TOY)
    words = tuple(draw.order(TOY_WORDS))
    found = WrittenBy(scene, draw.below(len(words) - 1), words=words)
    names = found.trace.key_tokens().names
    (layer, head), asked = found.place, words[(found.at + 1) % len(words)]
    rows = {names[at]: pair for at, pair in found.sources(asked).items() if pair[0] >= _SMALL}
    rest = [pair for pair in found.sources(asked).values() if pair[0] < _SMALL]
    if (share := sum(weight for weight, _ in rest)) > 0:
        rows[translate("all others")] = share, sum(weight * number for weight, number in rest) / share
    weights = [round(weight, _DIGITS_WRITING) for weight, _ in rows.values()]
    numbers = [round(number, _DIGITS_WRITING) for _, number in rows.values()]
    right = round(sum(one * other for one, other in zip(weights, numbers, strict=True)), 2 * _DIGITS_WRITING)
    return Exercise(
        "added",
        translate(
            "“{query}” comes again in “{words}”. What does layer {layer}, head {head} of the toy add there "
            "to the logit of “{word}”?",
            query=names[found.query],
            words=" ".join(words * 2),
            layer=layer,
            head=head,
            word=asked,
        ),
        (
            table(
                translate("Its weights, and the addition of each word to “{word}” at a weight of 1", word=asked),
                [*rows],
                (translate("weight"), translate("would add")),
                list(zip(weights, numbers, strict=True)),
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            translate("A head adds up the contributions of all words, each times its weight."),
            translate("Multiply each weight by the addition of its word."),
            translate("Add the products."),
        ),
        f"{products(weights, numbers)} = {written(right)}.",
        (
            Slip(
                round(sum(numbers), _DIGITS_WRITING),
                translate("that leaves the weights out; multiply each addition by its weight first."),
            ),
            Slip(
                round(sum(numbers) / len(numbers), _DIGITS_WRITING),
                translate("that is the mean; each word counts by its own weight."),
            ),
            *_added_slips(weights, numbers, right),
        ),
    )


def _added_slips(weights: Sequence[float], numbers: Sequence[float], right: float) -> list[Slip]:
    """Return the mistakes with one word alone and with signs, unless they come to the right answer."""
    products = [one * other for one, other in zip(weights, numbers, strict=True)]
    most = weights.index(max(weights))
    slips = [
        *(
            Slip(number, translate("that is one word's addition at a weight of 1; multiply it by its weight."))
            for number in numbers
        ),
        Slip(products[most], translate("that is the word with the largest weight alone; the others add, too.")),
        Slip(sum(map(abs, products)), translate("did you lose a minus sign?")),
        Slip(-right, translate("that is right except for its sign.")),
        Slip(sum(weights), translate("those are the weights alone; multiply each by its word's addition.")),
    ]
    return [slip for slip in slips if isinstance(slip.answer, float) and abs(slip.answer - right) > 2 * ROUNDED]
