"""Tasks with a head's additions to logits."""

from attention_viz.lesson.composed import TOY_WORDS
from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, products, table
from attention_viz.lesson.written import WrittenBy

__all__ = ["added"]

_DIGITS = 2
# Words with less weight than this are taken together.
_SMALL = 0.02


def added(scene: Scene, seed: int) -> Exercise:
    """Ask for a head's addition to a logit, from weights and each source's addition."""
    draw = Draw("added", seed, TOY)
    words = tuple(draw.order(TOY_WORDS))
    found = WrittenBy(scene, draw.below(len(words) - 1), words=words)
    names = found.trace.key_tokens().written
    (layer, head), asked = found.place, words[(found.at + 1) % len(words)]
    rows = {f"{names[at]} at {at}": pair for at, pair in found.sources(asked).items() if pair[0] >= _SMALL}
    rest = [pair for pair in found.sources(asked).values() if pair[0] < _SMALL]
    if (share := sum(weight for weight, _ in rest)) > 0:
        rows["all others"] = share, sum(weight * number for weight, number in rest) / share
    weights = [round(weight, _DIGITS) for weight, _ in rows.values()]
    numbers = [round(number, _DIGITS) for _, number in rows.values()]
    right = round(sum(one * other for one, other in zip(weights, numbers, strict=True)), 2 * _DIGITS)
    return Exercise(
        "added",
        f"“{names[found.query]}” comes again in “{' '.join(words * 2)}”. What does layer {layer}, head {head} of the "
        f"toy add there to the logit of “{asked}”?",
        (
            table(
                f"Where it looks, and what each would add to “{asked}” at a weight of 1",
                [*rows],
                ("weight", "would add"),
                list(zip(weights, numbers, strict=True)),
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            "A head writes what it fetches from each word, by its weight.",
            "Multiply each weight by what that word would add.",
            "Add the products.",
        ),
        f"{products(weights, numbers)} = {written(right)}.",
        (
            Slip(round(sum(numbers), _DIGITS), "that leaves the weights out; multiply each by its weight first."),
            Slip(
                round(sum(numbers) / len(numbers), _DIGITS),
                "that is the mean; each word counts by its own weight.",
            ),
        ),
    )
