"""A task with a language model's induction head."""

from attention_viz.lesson.exercise import Exercise, OptionAnswer, Slip, written
from attention_viz.lesson.language import Twice
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import Draw, named
from attention_viz.lesson.translation import translate

# The right key's weight must lead the others' by that much.
_MARGIN = 0.02
_DIGITS = 3


def job(scene: Scene, seed: int) -> Exercise:
    """Ask for a repeated token's strongest key in the top induction head."""
    draw, twice = Draw("job", seed, scene.text), Twice(scene)
    layer, head, _ = twice.heads("induction")[0]
    weights, names = twice.trace.weights(layer, head), named(twice.trace.query_tokens().names)
    query = draw.pick(_queries(twice, layer, head))
    after = twice.keys("induction")[query]
    # The likely mistakes come first; two roles may fall on one token.
    roles = {
        after - 1: translate("that is the same token, earlier; this head looks at the one after it."),
        query - 1: translate("that is the token before; previous-token heads look there."),
        twice.rows.first: translate("heads look there if they find nothing; this head has a pattern to continue."),
    }
    options = sorted({after, *(at for at in roles if 0 <= at != after)})
    row = {at: round(float(weights[query, at]), _DIGITS) for at in options}
    most = max(row.values())
    right = frozenset(at for at, key in enumerate(options) if row[key] == most)
    wrong = [(at, key) for at, key in enumerate(options) if at not in right]
    slips = [
        Slip(
            at,
            roles.get(
                key,
                translate(
                    "from there it takes {weight}, and {most} from another.",
                    weight=written(row[key]),
                    most=written(most),
                ),
            ),
        )
        for at, key in wrong
    ]
    return Exercise(
        "job",
        twice.note
        + translate(
            "{model} reads “{text}” twice. An induction head looks at the token that followed the same token last "
            "time. The strongest one is layer {layer}, head {head}. Which of these does “{word}” look at most there?",
            model=twice.model,
            text=twice.quoted,
            layer=layer,
            head=head,
            word=names[query],
        ),
        (),
        OptionAnswer(tuple(names[key] for key in options), right),
        (
            translate("“{word}” was there before. What came next then?", word=names[query]),
            *_last_hints(row.values(), [names[key] for _, key in wrong]),
        ),
        _working(names[query], names, row),
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
