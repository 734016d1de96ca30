"""A task around attention: additions to a word's vector, a logit, and the temperature."""

from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import WHOLE, Draw, factor, hand_words, products, vectors
from attention_viz.lesson.translation import translate

_WIDTH, _TEMPERATURES = 2, (0.5, 2.0, 4.0)


def residual(scene: Scene, seed: int) -> Exercise:
    """Ask for a token's entry into the last softmax, from the word's vector and one layer's additions."""
    draw = Draw("residual", seed, scene.text)
    words, note = hand_words(scene, draw, most=3, least=2)
    word, others = words[0], words[1:]
    start, attention, mlp = (draw.vector(_WIDTH) for _ in range(3))
    rows = [draw.vector(_WIDTH) for _ in others]
    at, temperature = draw.below(len(others)), draw.pick(_TEMPERATURES)
    end = [sum(numbers) for numbers in zip(start, attention, mlp, strict=True)]
    logit = _dot(end, rows[at])
    right = logit / temperature
    sums = ", ".join(
        f"{written(one)} + {factor(two)} + {factor(three)} = {written(total)}"
        for one, two, three, total in zip(start, attention, mlp, end, strict=True)
    )
    return Exercise(
        "residual",
        note
        + translate(
            "A model has one layer and no norms. “{word}” enters with the first vector in the table; attention and the "
            "MLP output the other two. The unembedding has a vector per token. What enters the last softmax for "
            "“{asked}” at T = {temperature}?",
            word=word,
            asked=others[at],
            temperature=written(temperature),
        ),
        (
            vectors(
                scene,
                translate("At “{word}”", word=word),
                (translate("enters"), translate("attention"), translate("MLP")),
                [start, attention, mlp],
            ),
            vectors(scene, translate("Unembedding"), others, rows),
        ),
        NumberAnswer(right, WHOLE),
        (
            translate("A layer replaces nothing: attention and the MLP both add to the word's vector."),
            translate("The last vector is ({vector}).", vector=", ".join(map(written, end))),
            translate(
                "The logit of “{asked}” is the dot product {products}; divide it by T.",
                asked=others[at],
                products=products(end, rows[at]),
            ),
        ),
        translate(
            "The last vector has the numbers {sums}. The logit is {products} = {logit}, and {logit} / {temperature} = "
            "{right}.",
            sums=sums,
            products=products(end, rows[at]),
            logit=written(logit),
            temperature=written(temperature),
            right=written(right),
        ),
        _slips(start, attention, mlp, rows[at], temperature),
    )


def _dot(left: list[int], right: list[int]) -> int:
    return sum(one * other for one, other in zip(left, right, strict=True))


def _slips(
    start: list[int], attention: list[int], mlp: list[int], row: list[int], temperature: float
) -> tuple[Slip, ...]:
    one, two, three = (_dot(vector, row) for vector in (start, attention, mlp))
    return (
        Slip(one + two + three, translate("that is the logit; divide it by the temperature.")),
        Slip((one + two + three) * temperature, translate("did you multiply by T? The logit is divided by it.")),
        Slip(
            (two + three) / temperature,
            translate("the word's own vector is missing: what a layer outputs is added to it, not put in its place."),
        ),
        Slip((one + two) / temperature, translate("the MLP is missing: it adds to the vector, too.")),
        Slip((one + three) / temperature, translate("attention is missing: it adds to the vector, too.")),
        Slip(three / temperature, translate("that is the MLP's output alone; add all three vectors.")),
    )
