"""Tasks about the toy: a score's parts, and a head's additions to logits."""

from attention_viz.lesson.composed import TOY_WORDS, Composed, WrittenBy
from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, factor, products, table

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
        f"“{names[pair.query]}” comes again in “{' '.join(words * 2)}”. Its score with “{names[pair.key]}” in layer "
        f"{layer}, head {head} of the toy is {written(score)}: the sum of the parts in the table and of the "
        f"contribution of head {before_head} of layer {before_layer}. What did that head contribute?",
        (table("Parts of the score", [*rows], ("contributed",), [[number] for number in rows.values()]),),
        NumberAnswer(right, ROUNDED),
        (
            "All parts together are the score: one is missing.",
            f"The parts in the table add up to {written(rest)}.",
            f"Subtract {written(rest)} from {written(score)}.",
        ),
        f"{written(score)} − ({added}) = {written(score)} − {factor(rest)} = {written(right)}.",
        (
            Slip(rest, "that is the sum of the other parts; subtract it from the score."),
            Slip(round(score + rest, _DIGITS), "did you add the other parts to the score? Subtract them."),
            Slip(score, "that is the whole score; the other parts contributed some of it."),
        ),
    )


def _called(kind: str, layer: int | None, _head: int | None) -> str:
    if kind == "head":
        return f"layer {layer}, its other heads"
    return {"embedding": "the word itself", "mlp": f"layer {layer}, MLP"}.get(kind, "all else")


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
        rows["all others"] = share, sum(weight * number for weight, number in rest) / share
    weights = [round(weight, _DIGITS_WRITING) for weight, _ in rows.values()]
    numbers = [round(number, _DIGITS_WRITING) for _, number in rows.values()]
    right = round(sum(one * other for one, other in zip(weights, numbers, strict=True)), 2 * _DIGITS_WRITING)
    return Exercise(
        "added",
        f"“{names[found.query]}” comes again in “{' '.join(words * 2)}”. What does layer {layer}, head {head} of the "
        f"toy add there to the logit of “{asked}”?",
        (
            table(
                f"Its weights, and the addition of each word to “{asked}” at a weight of 1",
                [*rows],
                ("weight", "would add"),
                list(zip(weights, numbers, strict=True)),
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            "A head adds up the contributions of all words, each times its weight.",
            "Multiply each weight by the addition of its word.",
            "Add the products.",
        ),
        f"{products(weights, numbers)} = {written(right)}.",
        (
            Slip(
                round(sum(numbers), _DIGITS_WRITING),
                "that leaves the weights out; multiply each addition by its weight first.",
            ),
            Slip(
                round(sum(numbers) / len(numbers), _DIGITS_WRITING),
                "that is the mean; each word counts by its own weight.",
            ),
        ),
    )
