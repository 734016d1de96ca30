"""Tasks about states: reading one that decays, and a second value for the same key."""

from collections.abc import Sequence

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import (
    ROUNDED,
    Draw,
    factor,
    hand_words,
    matrix,
    products,
    shares,
    table,
    vectors,
)
from attention_viz.lesson.translation import translate
from attention_viz.lesson.without_softmax import delta, running

_HALF = 0.5
# Of the state, what a word's query reads has this many parts at least, so that the decay matters.
_PARTS = 2
_STRENGTHS = (0.25, 0.5, 0.75)
# Label, β, decay and whether it erases; the first is right. What each does wrong follows.
_RULES = (
    ("erase, β = 1, no decay", 1.0, 1.0, True),
    ("erase, β = 0.5, no decay", 0.5, 1.0, True),
    ("don't erase, β = 1, no decay", 1.0, 1.0, False),
    ("erase, β = 1, decay 0.5", 1.0, 0.5, True),
    ("don't erase, β = 1, decay 0.5", 1.0, 0.5, False),
)
_WRONG = (
    "",
    "β = 0.5 replaces only half of a key's old value, and writes only half of each new one.",
    "without erasing, the second value is added to the first.",
    "a decay shrinks the values of all keys, even of one that isn't written.",
    "a decay shrinks the values of all keys alike, and some of the first is still there.",
)


def state(scene: Scene, seed: int) -> Exercise:
    """Ask for a query's product with a decaying state."""
    draw = Draw("state", seed, scene.text)
    words, note = hand_words(scene, draw, most=3, least=2)
    kept = [_HALF ** (len(words) - 1 - at) for at in range(len(words))]
    while True:
        keys, query = [draw.vector(2, 2) for _ in words], draw.vector(2, 2)
        values = [draw.pick((-3, -2, -1, 1, 2, 3)) for _ in words]
        mixer = running([query] * len(words), keys, [[one] for one in values], _HALF)
        row, right = mixer.weights[-1], float(mixer.output[-1, 0])
        entries = [[key[c] for key in keys] for c in range(2)]
        held = [sum(a * b * part for a, b, part in zip(one, values, kept, strict=True)) for one in entries]
        # The answer isn't given away by an entry of the state.
        if int((row != 0).sum()) >= _PARTS and not any(written(one).startswith(written(right)) for one in held):
            break
    sums = [
        translate(
            "dimension {number}: {parts} = {sum}", number=c, parts=_parts(one, values, kept), sum=written(held[c])
        )
        for c, one in enumerate(entries)
    ]
    return Exercise(
        "state",
        note
        + translate(
            "Linear attention reads “{words}”, with one number as a value. Each word halves the state (a "
            "decay of {decay}), then adds its key times its value. At the last word, what does its query "
            "read: query · state?",
            words=" ".join(words),
            decay=written(_HALF),
        ),
        (
            vectors(scene, translate("Keys"), words, keys),
            table(translate("Values"), (translate("value"),), words, (values,)),
            vectors(scene, translate("Query of “{word}”", word=words[-1]), (words[-1],), (query,)),
        ),
        NumberAnswer(right, ROUNDED),
        (
            translate("The last word's part isn't halved yet, the one before is halved once, and so on."),
            translate("The state, {sum}.", sum=sums[0]),
            translate("The state is ({first}, {second}).", first=written(held[0]), second=written(held[1])),
        ),
        translate(
            "The state (key · value · decay), {sums}. Query · state: {products} = {answer}.",
            sums="; ".join(sums),
            products=products(query, held),
            answer=written(right),
        ),
        _state_slips(query, keys, values, kept),
    )


def _parts(key: Sequence[float], values: Sequence[float], kept: Sequence[float]) -> str:
    """Write out one entry of the state: (−1)·2·0.25 + 1·3·1."""
    return " + ".join("·".join(map(factor, one)) for one in zip(key, values, kept, strict=True))


def _state_slips(
    query: Sequence[int], keys: Sequence[Sequence[int]], values: Sequence[int], kept: Sequence[float]
) -> tuple[Slip, ...]:
    fits = [float(matrix([query])[0] @ matrix([key])[0]) for key in keys]

    def total(weights: Sequence[float]) -> float:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    row = [fit * part for fit, part in zip(fits, kept, strict=True)]
    found = [
        Slip(total(fits), translate("did you forget the decay? Each word halves the state before it adds its part.")),
        Slip(_HALF * total(row), translate("did you halve the last word's part, too? It is added after the halving.")),
        Slip(
            total([fit * part for fit, part in zip(fits, kept[::-1], strict=True)]),
            translate("did you halve the newest word most? The oldest was halved most often."),
        ),
        Slip(
            row[-1] * values[-1],
            translate("that is the last word's part alone; the state has those of earlier words, too."),
        ),
        Slip(sum(row), translate("did you leave the values out?")),
        Slip(total(kept), translate("did you leave queries and keys out? A query reads by its product with each key.")),
        Slip(
            total(shares(fits).weights[0].tolist()), translate("that is attention with a softmax, and without a decay.")
        ),
    ]
    if sum(row):
        found.append(
            Slip(total(row) / sum(row), translate("did you divide by the sum of the weights? Here they needn't be 1."))
        )
    return tuple(found)


def erase(scene: Scene, seed: int) -> Exercise:
    """Ask for the rule, or the β, that replaces a first value by a second."""
    draw = Draw("erase", seed, scene.text)
    words, note = hand_words(scene, draw, most=2, least=2)
    return (_rule if draw.below(2) else _strength)(draw, words, note)


def _rule(draw: Draw, words: tuple[str, ...], note: str) -> Exercise:
    while True:
        old, new, other = (draw.whole(1, 9) for _ in range(3))
        results = {rule[0]: _read((old, other, new), *rule[1:]) for rule in _RULES}
        if old != new and len({*results.values()}) == len(_RULES):
            break
    order = draw.order(_RULES)
    right = order.index(_RULES[0])
    twice, once = words
    reads = {
        name: translate(
            "{first} for “{word}” and {second} for “{other}”",
            first=written(one),
            word=twice,
            second=written(rest),
            other=once,
        )
        for name, (one, rest) in results.items()
    }
    slips = tuple(
        Slip(order.index(rule), translate("that gives {values}: {why}", values=reads[rule[0]], why=translate(why)))
        for rule, why in zip(_RULES[1:], _WRONG[1:], strict=True)
    )
    return Exercise(
        "erase",
        note
        + translate(
            "A state stores {old} for “{word}”, then {between} for “{other}”, then {new} for “{word}” "
            "again. Their keys are perpendicular, with length 1. With which rule does it then give back "
            "{new} for “{word}” and {between} for “{other}”?",
            old=old,
            word=twice,
            between=other,
            other=once,
            new=new,
        ),
        (
            table(
                translate("Written, in order"),
                (translate("value"),),
                (twice, once, translate("{word} again", word=twice)),
                ((old, other, new),),
            ),
        ),
        OptionAnswer.written(lambda: tuple(translate(rule[0]) for rule in order), frozenset({right})),
        (
            translate(
                "The first value of “{word}” has to go, and nothing may happen to “{other}”.", word=twice, other=once
            ),
            translate("A decay shrinks everything; erasing only takes away the value of the key that is written."),
            translate(
                "If it neither erases nor decays, the state gives back {result} for “{word}”.",
                result=written(results[_RULES[2][0]][0]),
                word=twice,
            ),
        ),
        "; ".join(f"{translate(rule[0])}: {reads[rule[0]]}" for rule in order) + ".",
        slips,
    )


def _read(written_values: Sequence[float], strength: float, decay: float, erases: bool) -> tuple[float, float]:
    """Read a state at two perpendicular keys, the first of them written twice."""
    first, second = [1.0, 0.0], [0.0, 1.0]
    keys = [first, second, first]
    values = [[one] for one in written_values]
    found = []
    for asked in (first, second):
        mixer = delta([asked] * 3, keys, values, [strength] * 3, decay, erases=erases)
        found.append(float(mixer.output[-1, 0]))
    return found[0], found[1]


def _strength(draw: Draw, words: tuple[str, ...], note: str) -> Exercise:
    while True:
        old, new = 4 * draw.whole(1, 5), 4 * draw.whole(0, 5)
        if old != new:
            break
    right, word = draw.pick(_STRENGTHS), words[0]
    wanted = _after(old, new, right)
    slips = [
        Slip(1 - right, translate("that is the part of the old value that stays; β is the part that is replaced.")),
        Slip(
            1.0,
            translate("that replaces the whole old value, and gives {value}.", value=written(_after(old, new, 1.0))),
        ),
        Slip(0.0, translate("that writes nothing, and leaves {value}.", value=written(_after(old, new, 0.0)))),
        Slip(wanted - old, translate("that is the change of the state; divide it by the change for β = 1.")),
        Slip((wanted - old) / old, translate("did you divide by the old value? Divide by the change for β = 1.")),
    ]
    if new:
        slips.append(
            Slip(wanted / new, translate("did you forget the old value? β also says how much of it is erased."))
        )
        slips.append(
            Slip((wanted - old) / new, translate("that only adds to the old value; the delta rule erases as well."))
        )
    return Exercise(
        "erase",
        note
        + translate(
            "A state gives back {old} for “{word}”. Now “{word}” is written again, with {new}, by the delta "
            "rule and without a decay. Its key has length 1. With which β does the state then give back "
            "{wanted}?",
            old=old,
            word=word,
            new=new,
            wanted=written(wanted),
        ),
        (),
        NumberAnswer(right, ROUNDED),
        (
            translate("The delta rule takes away β times the old value and adds β times the new one."),
            translate(
                "With β = 1 the state would change from {old} to {new}: by {change}.",
                old=old,
                new=new,
                change=written(new - old),
            ),
            translate("It has to change by {change}.", change=written(wanted - old)),
        ),
        f"({written(wanted)} − {old}) / ({new} − {old}) = {factor(wanted - old)} / {factor(new - old)} = "
        f"{written(right)}.",
        tuple(slips),
    )


def _after(old: float, new: float, strength: float) -> float:
    """Read a state at a key that was written with β 1 first, then with `strength`."""
    return float(delta([[1.0]] * 2, [[1.0]] * 2, [[old], [new]], [1.0, strength]).output[-1, 0])
