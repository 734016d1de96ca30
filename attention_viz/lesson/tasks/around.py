"""Tasks around attention: additions to a word's vector, and two logits at a temperature."""

import math

from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import ROUNDED, WHOLE, Draw, factor, hand_words, products, vectors
from attention_viz.lesson.translation import translate

_WIDTH, _TEMPERATURES = 2, (0.5, 2.0, 4.0)
# The largest power of e whose result is easy to type, and the least difference of logits that slips show.
_STEEPEST, _LEAST_GAP = 3.0, 1.0
# Vectors of length 1, as a norm that divides by the length leaves them, and the range of the unembedding's numbers.
_SIDES, _UNEMBEDDING = (0.6, 0.8), 5


def residual(scene: Scene, seed: int) -> Exercise:
    """Ask what a layer's MLP reads, if a norm divides by the length, from the vector and attention's output."""
    draw = Draw("residual", seed, scene.text)
    words, note = hand_words(scene, draw, most=1)
    while True:
        start, attention, mlp = (draw.vector(_WIDTH) for _ in range(3))
        total = _sum(start, attention)
        # Their lengths differ, so that a norm of the wrong vector shows.
        if math.hypot(*total) > 1 and math.hypot(*start) > 1:
            break
    at, length = draw.below(_WIDTH), math.hypot(*total)
    right = total[at] / length
    squares = " + ".join(f"{factor(one)}²" for one in total)
    vector = ", ".join(map(written, total))
    return Exercise(
        "residual",
        note
        + translate(
            "“{word}” enters a layer with the first vector of the table. Attention outputs the second, then the MLP "
            "the third. Each norm divides a copy by its length. What is dimension {column} of the copy that the MLP "
            "reads, to two decimals?",
            word=words[0],
            column=at,
        ),
        (
            vectors(
                scene,
                translate("At “{word}”", word=words[0]),
                (translate("enters"), translate("attention"), translate("MLP")),
                [start, attention, mlp],
            ),
        ),
        NumberAnswer(right, ROUNDED),
        (
            translate("Attention replaces nothing: its output is added to the vector that entered."),
            translate("The MLP comes after attention, so its norm reads the sum ({vector}).", vector=vector),
            translate("The length of the sum is the root of {squares}.", squares=squares),
        ),
        translate(
            "The sum is ({vector}), and its length is √({squares}) = {length}. So the MLP reads {number} / {length} = "
            "{right}.",
            vector=vector,
            squares=squares,
            length=written(length),
            number=written(total[at]),
            right=written(right),
        ),
        _residual_slips(start, attention, mlp, at),
    )


def _residual_slips(start: list[int], attention: list[int], mlp: list[int], at: int) -> tuple[Slip, ...]:
    total, whole = _sum(start, attention), _sum(_sum(start, attention), mlp)
    slips = [
        Slip(total[at], translate("that is the sum; the norm divides it by its length.")),
        Slip(
            attention[at] / math.hypot(*attention),
            translate("the vector that entered is missing: attention's output is added to it, not put in its place."),
        ),
        Slip(start[at] / math.hypot(*start), translate("attention is missing: the MLP reads the sum after it.")),
        Slip(total[1 - at] / math.hypot(*total), translate("that is dimension {column}.", column=1 - at)),
        Slip(total[at] / sum(one * one for one in total), translate("the length is the root of that sum of squares.")),
        Slip(
            total[at] / sum(map(abs, total)),
            translate("a length is the root of the squares' sum, and not the sum of the numbers."),
        ),
    ]
    if any(whole):
        slips.append(
            Slip(whole[at] / math.hypot(*whole), translate("the MLP's own output comes later; it can't read that yet."))
        )
    return tuple(slips)


def logits(scene: Scene, seed: int) -> Exercise:
    """Ask how many times as likely one of two next tokens is, from the last vector and the unembedding."""
    draw = Draw("logits", seed, scene.text)
    words, note = hand_words(scene, draw, most=3, least=3)
    word, first, second = words
    temperature = draw.pick(_TEMPERATURES)
    while True:
        last = [side * draw.pick((-1, 1)) for side in draw.order(_SIDES)]
        rows = [draw.vector(_WIDTH, _UNEMBEDDING) for _ in range(2)]
        high, low = (_dot(last, row) for row in rows)
        if high - low >= _LEAST_GAP and (high - low) / temperature <= _STEEPEST:
            break
    if draw.below(2):
        # The less likely token is asked about as often.
        high, low, rows = low, high, rows[::-1]
    gap = round(high - low, 1)
    right = math.exp(gap / temperature)
    names = {"first": first, "second": second}
    values = {
        "high": written(high),
        "low": factor(low),
        "gap": written(gap),
        "temperature": written(temperature),
        "power": written(gap / temperature),
    }
    return Exercise(
        "logits",
        note
        + translate(
            "The last vector of “{word}”, normed to length 1, and the unembedding's vectors of two tokens are below. "
            "At T = {temperature}, how many times as likely as “{second}” is “{first}” to come next, to two decimals?",
            word=word,
            temperature=values["temperature"],
            **names,
        ),
        (
            vectors(scene, translate("Last vector, normed"), (word,), [last]),
            vectors(scene, translate("Unembedding"), (first, second), rows),
        ),
        NumberAnswer(right, max(ROUNDED, WHOLE * right)),
        (
            translate(
                "The logits are dot products: {one} for “{first}” and {other} for “{second}”.",
                one=products(last, rows[0]),
                other=products(last, rows[1]),
                **names,
            ),
            translate("The softmax divides both powers of e by the same sum, so only the logits' difference counts."),
            translate("The temperature divides the difference: it is e^(({high} − {low}) / {temperature}).", **values),
        ),
        translate(
            "The logits are {high} and {low}. e^(({high} − {low}) / {temperature}) = e^({power}) = {right}.",
            **values,
            right=written(right),
        ),
        _logits_slips(high, low, temperature),
    )


def _logits_slips(high: float, low: float, temperature: float) -> tuple[Slip, ...]:
    gap = round(high - low, 1)
    slips = [
        Slip(math.exp(gap), translate("the temperature is missing: it divides the logits before the softmax.")),
        Slip(math.exp(-gap / temperature), translate("did you swap the two tokens?")),
        Slip(gap / temperature, translate("that is the difference of the logits, divided by T; raise e to it.")),
        Slip(gap, translate("that is the difference of the logits; divide it by T, and raise e to it.")),
        Slip(
            math.exp(high / temperature),
            translate("that is the power of one logit; divide it by the other token's."),
        ),
    ]
    if gap * temperature < 20:
        slips.append(
            Slip(math.exp(gap * temperature), translate("did you multiply by T? The logits are divided by it."))
        )
    if low:
        slips.append(
            Slip(high / low, translate("that divides the logits; the softmax divides powers of e, not the logits."))
        )
    return tuple(slips)


def _sum(left: list[int], right: list[int]) -> list[int]:
    return [one + other for one, other in zip(left, right, strict=True)]


def _dot(left: list[float], right: list[int]) -> float:
    """Return a dot product of tenths and whole numbers, without what sums of decimals are off by."""
    return round(sum(one * other for one, other in zip(left, right, strict=True)), 1)
