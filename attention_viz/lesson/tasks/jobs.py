"""A task with a language model's induction head."""

from attention_viz.edits.words import listed
from attention_viz.lesson.exercise import Exercise, OptionAnswer, Slip, written
from attention_viz.lesson.language import Twice
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import Draw, named

__all__ = ["job"]

_DIGITS = 3
# A row whose best option is ahead by that much can be told without a doubt.
_MARGIN = 0.02


def job(scene: Scene, seed: int) -> Exercise:
    """Ask for a repeated token's strongest key in the top induction head."""
    draw, twice = Draw("job", seed, scene.text), Twice(scene)
    layer, head, _ = twice.heads("induction")[0]
    weights, names = twice.trace.weights(layer, head), named(twice.trace.query_tokens().written)
    query = draw.pick(_queries(twice, layer, head))
    after = twice.keys("induction")[query]
    # What a slip would be about comes first; two roles may fall on one token.
    roles = {
        after - 1: "that is the same token, earlier; this head looks at what came after it.",
        query - 1: "that is the token before it, at which another kind of head looks.",
        twice.rows.first: "there heads rest that find nothing; this one has something to go on with.",
    }
    options = sorted({after, *(at for at in roles if 0 <= at != after)})
    row = {at: round(float(weights[query, at]), _DIGITS) for at in options}
    most = max(row.values())
    right = frozenset(at for at, key in enumerate(options) if row[key] == most)
    wrong = [(at, key) for at, key in enumerate(options) if at not in right]
    slips = [
        Slip(at, roles.get(key, f"from there it takes {written(row[key])}, and {written(most)} from another."))
        for at, key in wrong
    ]
    listing = "; ".join(f"{written(weight)} from “{names[key]}”" for key, weight in row.items())
    return Exercise(
        "job",
        f"{twice.note}{twice.model} reads “{twice.quoted}” twice over. In layer {layer}, head {head}, which "
        f"goes on with patterns more than any other, at which of these does “{names[query]}” look most?",
        (),
        OptionAnswer(tuple(names[key] for key in options), right),
        (
            f"“{names[query]}” was there before. What came next then?",
            f"From them it takes {listed([written(one) for one in sorted(row.values(), reverse=True)])}.",
            f"It isn't “{names[wrong[0][1]]}”." if wrong else "It takes as much from each: any of them is right.",
        ),
        f"“{names[query]}” takes: {listing}.",
        tuple(slips),
    )


def _queries(twice: Twice, layer: int, head: int) -> list[int]:
    weights, keys = twice.trace.weights(layer, head), twice.keys("induction")
    again = [at for at, key in enumerate(keys) if key >= 0]
    clear = [at for at in again if keys[at] not in (0, at) and _leads(weights[at].tolist(), keys[at])]
    return clear or again or [len(keys) - 1]


def _leads(row: list[float], key: int) -> bool:
    others = [weight for at, weight in enumerate(row) if at != key]
    return row[key] > max(others, default=0.0) + _MARGIN
