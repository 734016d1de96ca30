"""Tasks with shares: softmax, temperature, weighted sum, additive score."""

import math
from collections.abc import Sequence

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows
from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import (
    ROUNDED,
    WHOLE,
    Draw,
    dimensions,
    hand_words,
    matrix,
    products,
    shares,
    table,
    vectors,
)
from attention_viz.lesson.translation import translate
from attention_viz.trace.tokens import Tokens

_TEMPERATURES = (0.25, 1.0, 4.0)
# The range of each temperature's entropy, in parts of the largest: far enough apart to find by reasoning.
_ENTROPIES = ((0.0, 0.35), (0.4, 0.75), (0.8, 1.0))
_SPREADS = ((0.5, 0.3, 0.2), (0.6, 0.3, 0.1), (0.7, 0.2, 0.1), (0.4, 0.4, 0.2), (0.5, 0.4, 0.1))
_TANH = range(5)
_Product = tuple[list[list[int]], list[int]]


def plain(scene: Scene, seed: int) -> Exercise:
    """Ask for a weight from dot products alone."""
    draw = Draw("plain", seed, scene.text)
    words, note = hand_words(scene, draw, most=3, least=2)
    # A vector's dot product with itself is a sum of squares, and so above 0.
    dots = [draw.whole(1, 3), *(draw.whole(-2, 2) for _ in words[1:])]
    at = draw.below(len(words))
    right, powers = float(shares(dots).weights[0, at]), [math.exp(dot) for dot in dots]
    from_whom = translate("“{word}”", word=words[at]) if at else translate("itself")
    whole = " + ".join(f"e^({written(dot)})" for dot in dots)
    numbers = f"{written(powers[at])} / ({' + '.join(map(written, powers))})"
    slips = [
        Slip(powers[at], translate("that is e to the dot product; divide it by the sum over all words.")),
        Slip(dots[at], translate("that is the dot product itself; turn it into a share.")),
        Slip(float(shares([-dot for dot in dots]).weights[0, at]), translate("did you lose a minus sign?")),
        Slip(float(shares([dot / math.sqrt(3) for dot in dots]).weights[0, at]), translate("nothing is scaled here.")),
        Slip(1 / len(dots), translate("that would be the share if all dot products were equal.")),
    ]
    if sum(dots):
        slips.insert(
            0, Slip(dots[at] / sum(dots), translate("did you divide the dot products, without e to the power of each?"))
        )
    return Exercise(
        "plain",
        note
        + translate(
            "Attention without parameters: the vector of “{word}” has these dot products with itself and "
            "with the others. What share does “{word}” take from {other}, to at least two decimals?",
            word=words[0],
            other=from_whom,
        ),
        (
            table(translate("Dot products"), (words[0],), words, (dots,)),
            table(
                translate("e to the power of each, rounded"), (words[0],), words, ([round(one, 3) for one in powers],)
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            translate(
                "The shares are the softmax of the dot products: e to the power of each, divided by the sum of "
                "them all."
            ),
            translate("It is e^({dot}) / ({whole}).", dot=written(dots[at]), whole=whole),
            translate("The powers add up to {sum}.", sum=written(sum(powers))),
        ),
        f"e^({written(dots[at])}) / ({whole}) = {numbers} = {written(right)}.",
        tuple(slips),
    )


def temperature(scene: Scene, seed: int) -> Exercise:
    """Ask for the temperature that gives an entropy."""
    draw = Draw("temperature", seed, scene.text)
    words, note = hand_words(scene, draw, most=4, least=2)
    bound = math.log(len(words))
    while True:
        logits = [float(draw.whole(-2, 3)) for _ in words]
        entropies = [_entropy(logits, one) for one in _TEMPERATURES]
        if all(low <= one / bound <= high for one, (low, high) in zip(entropies, _ENTROPIES, strict=True)):
            break
    right = draw.below(len(_TEMPERATURES))
    options = tuple(map(written, _TEMPERATURES))
    listing = [f"T = {option}: {written(entropy)}" for option, entropy in zip(options, entropies, strict=True)]
    slips = tuple(
        Slip(
            at,
            translate("that gives {entropy}: too even.", entropy=written(one))
            if at > right
            else translate("that gives {entropy}: too sharp.", entropy=written(one)),
        )
        for at, one in enumerate(entropies)
        if at != right
    )
    near = (right + 1) % len(options)
    return Exercise(
        "temperature",
        note
        + translate(
            "The scaled scores of “{word}” are divided by a temperature T before the softmax. Which T gives "
            "its weights a the entropy −Σ a·ln a = {entropy}? With {count} words it is between 0 and ln {count} = "
            "{bound}.",
            word=words[0],
            entropy=written(entropies[right]),
            count=len(words),
            bound=written(bound),
        ),
        (table(translate("Scaled scores"), (words[0],), words, (logits,)),),
        OptionAnswer(options, frozenset({right})),
        (
            translate(
                "The entropy is 0 with all weight in one place, and {bound} with the same weight everywhere. Is "
                "it near one of the two, or in between?",
                bound=written(bound),
            ),
            translate(
                "A higher temperature evens the weights out, a lower one sharpens them. The entropy is −Σ a·ln "
                "a over the weights a."
            ),
            translate(
                "At T = {temperature} the entropy is {entropy}.",
                temperature=options[near],
                entropy=written(entropies[near]),
            ),
        ),
        translate("The entropy −Σ a·ln a of the weights at {listing}.", listing="; ".join(listing)),
        slips,
    )


def _entropy(logits: Sequence[float], divisor: float) -> float:
    """Return the entropy in nats."""
    alone = QueryRows.of(Tokens.of_ids([0]), Tokens.of_ids(range(len(logits))), alike=False)
    return METRICS["entropy"].mean(shares([one / divisor for one in logits]).weights, alone)


def output(scene: Scene, seed: int) -> Exercise:
    """Ask for one entry of the weighted sum."""
    draw = Draw("output", seed, scene.text)
    words, note = hand_words(scene, draw, most=3, least=2)
    spread = _SPREADS[draw.below(len(_SPREADS))] if len(words) == 3 else draw.pick(((0.75, 0.25), (0.6, 0.4)))
    weights, values = draw.order(spread), [draw.vector(2, 4) for _ in words]
    column = draw.below(2)
    mixed = shares([math.log(one) for one in weights], matrix(values)).output[0]
    right, taken = float(mixed[column]), [row[column] for row in values]
    slips = (
        Slip(float(mixed[1 - column]), translate("that is dimension {column}.", column=1 - column)),
        Slip(sum(taken), translate("did you add the values without their weights?")),
        Slip(sum(taken) / len(taken), translate("that is the plain mean; each value counts by its weight.")),
        Slip(
            taken[weights.index(max(weights))],
            translate("that is the value with the largest weight alone; the others count, too."),
        ),
        Slip(_dot(weights, [abs(one) for one in taken]), translate("did you lose the values' signs?")),
        Slip(_dot(weights, values[0] + [0]), translate("did you sum over the dimensions, and not over the words?")),
    )
    return Exercise(
        "output",
        note
        + translate(
            "“{word}” looks at these words with these weights. What is dimension {column} of its output?",
            word=words[0],
            column=column,
        ),
        (
            table(translate("Weights"), (words[0],), words, (weights,)),
            vectors(scene, translate("Values"), words, values),
        ),
        NumberAnswer(right, WHOLE),
        (
            translate(
                "Only dimension {column} of the values is needed: {numbers}.",
                column=column,
                numbers=", ".join(map(written, taken)),
            ),
            translate("Multiply each by its word's weight, and add up the products."),
            translate("It is {sum}.", sum=products(weights, taken)),
        ),
        translate(
            "Dimension {column} of the output: {sum} = {answer}.",
            column=column,
            sum=products(weights, taken),
            answer=written(right),
        ),
        slips,
    )


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=False))


def additive(scene: Scene, seed: int) -> Exercise:
    """Ask for r · tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2)."""
    draw = Draw("additive", seed, scene.text)
    words, note = hand_words(scene, draw, most=2)
    query, key, above = (draw.vector(2, 2) for _ in range(3))
    left, right = ([draw.vector(2, 1) for _ in range(2)] for _ in range(2))
    sums = [_dot(w, query) + _dot(u, key) for w, u in zip(left, right, strict=True)]
    found, inner = (
        _additive(above, sums),
        "; ".join(f"tanh({written(c)}) = {written(math.tanh(c))}" for c in sums),
    )
    lines = [
        translate(
            "dimension {number}: {first} + {second} = {sum}",
            number=c,
            first=products(left[c], query),
            second=products(right[c], key),
            sum=written(sums[c]),
        )
        for c in range(2)
    ]
    return Exercise(
        "additive",
        note
        + translate(
            "Older attention scores a pair as r · tanh(W q + U k); W q is each row of W times q. What is "
            "the score of “{word}”, with query q, for “{other}”, with key k, to two decimals?",
            word=words[0],
            other=words[-1],
        ),
        (
            vectors(scene, translate("Vectors"), ("q", "k", "r"), (query, key, above)),
            table("W", dimensions(2), dimensions(2), left),
            table("U", dimensions(2), dimensions(2), right),
            table(
                translate("tanh, with tanh(−x) = −tanh(x)"),
                ("tanh",),
                [*map(str, _TANH), translate("more")],
                (_tanh(),),
            ),
        ),
        # The answer uses the rounded tanh of the table; an exact tanh is right, too.
        NumberAnswer(found, ROUNDED + 0.003),
        (
            translate("Work out W q and U k first, and add them: each row of W times q, each row of U times k."),
            f"W q + U k: {'; '.join(lines)}.",
            translate("Then {inner}; and the product with r.", inner=inner),
        ),
        translate(
            "W q + U k: {lines}. {inner}. r times these: {sum} = {answer}.",
            lines="; ".join(lines),
            inner=inner,
            sum=products(above, [math.tanh(c) for c in sums]),
            answer=written(found),
        ),
        _additive_slips(above, (left, query), (right, key)),
    )


def _tanh() -> list[float]:
    """Round to three decimals."""
    return [round(math.tanh(one), 3) for one in (*_TANH, math.inf)]


def _additive_slips(above: list[int], first: _Product, second: _Product) -> tuple[Slip, ...]:
    """Take (W, q) and (U, k)."""
    asked, found = ([_dot(row, vector) for row in rows] for rows, vector in (first, second))
    sums = [a + b for a, b in zip(asked, found, strict=True)]
    turned = [
        _dot([row[c] for row in first[0]], first[1]) + _dot([row[c] for row in second[0]], second[1]) for c in range(2)
    ]
    return (
        Slip(_dot(above, sums), translate("did you forget tanh?")),
        Slip(math.tanh(_dot(above, sums)), translate("tanh comes before the product with r, number by number.")),
        Slip(_additive(above, asked), translate("did you forget U k?")),
        Slip(_additive(above, found), translate("did you forget W q?")),
        Slip(_additive(above, turned), translate("did you take columns of W and U? Multiply their rows by q and k.")),
        Slip(sum(map(math.tanh, sums)), translate("did you forget r?")),
    )


def _additive(above: Sequence[float], sums: Sequence[float]) -> float:
    """Return r · tanh(sums), tanh rounded to three decimals."""
    return float(matrix([above])[0] @ matrix([sums])[0].tanh().round(decimals=3))
