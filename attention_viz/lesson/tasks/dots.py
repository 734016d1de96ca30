"""Tasks with dot products: nearest vector, query entry, score, scaled score."""

import math

import torch
from torch import Tensor

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import (
    ROUNDED,
    WHOLE,
    Draw,
    dimensions,
    factor,
    hand_words,
    matrix,
    products,
    table,
    vectors,
)
from attention_viz.lesson.translation import translate
from attention_viz.operation.attention import attend
from attention_viz.operation.modules import AttentionHead

_WIDTHS = (4, 9, 16, 25, 64)
# Vectors whose lengths are whole numbers, so that a cosine needs no calculator.
_WHOLE_LENGTHS = tuple(
    [x, y] for x in range(-5, 6) for y in range(-5, 6) if (x, y) != (0, 0) and math.hypot(x, y).is_integer()
)


def nearest(scene: Scene, seed: int) -> Exercise:
    """Ask for the largest dot product or cosine with a word."""
    draw = Draw("nearest", seed, scene.text)
    words, note = hand_words(scene, draw, most=4, least=3)
    asked = draw.pick(("dot product", "cosine"))
    while True:
        rows = [draw.vector(2) if asked == "dot product" else draw.pick(_WHOLE_LENGTHS) for _ in words]
        dots, cosines = _fits(matrix(rows))
        fits = dots if asked == "dot product" else cosines
        first, second, *_ = sorted(fits.values(), reverse=True)
        places = list(fits)
        right = max(places, key=lambda at: fits[at])
        # The word with the largest dot product must not also have the largest cosine.
        if first - second > ROUNDED and (asked == "dot product" or dots[right] < max(dots.values())):
            break
    return Exercise(
        "nearest",
        f"{note}{_nearest_question(asked, words[0])}",
        (vectors(scene, translate("Vectors"), words, rows),),
        OptionAnswer(tuple(words[at] for at in places), frozenset({places.index(right)})),
        _nearest_hints(asked, words, rows),
        _nearest_working(asked, words, rows, fits),
        _nearest_slips(asked, places, rows, dots),
    )


def _nearest_question(asked: str, name: str) -> str:
    if asked == "cosine":
        return translate(
            "The table gives each word a vector. Whose vector has the largest cosine with that of “{word}”?", word=name
        )
    return translate(
        "The table gives each word a vector. Whose vector has the largest dot product with that of “{word}”?", word=name
    )


def _fits(rows: Tensor) -> tuple[dict[int, float], dict[int, float]]:
    units = rows / rows.norm(dim=-1, keepdim=True)
    fits = [attend(some, some, some).scores[0].tolist() for some in (rows, units)]
    dots, cosines = ({at: one[at] for at in range(1, len(rows))} for one in fits)
    return dots, cosines


def _nearest_hints(asked: str, words: tuple[str, ...], rows: list[list[int]]) -> tuple[str, ...]:
    first = translate("For “{word}” the dot product is {sum}.", word=words[1], sum=products(rows[0], rows[1]))
    if asked == "dot product":
        return (translate("Multiply the vectors dimension by dimension, and add up the products."), first)
    return (
        translate("A cosine is a dot product divided by both vectors' lengths: only the direction counts."),
        first,
        translate(
            "The length of a vector is the root of the sum of its squares, here always a whole number; that "
            "of “{word}” is √({sum}) = {length}.",
            word=words[1],
            sum=" + ".join(f"{factor(one)}·{factor(one)}" for one in rows[1]),
            length=_length(rows[1]),
        ),
    )


def _length(row: list[int]) -> str:
    return written(math.hypot(*row))


def _nearest_working(asked: str, words: tuple[str, ...], rows: list[list[int]], fits: dict[int, float]) -> str:
    parts: list[str] = []
    for at, fit in fits.items():
        dot = products(rows[0], rows[at])
        whole = f"({dot}) / ({_length(rows[0])}·{_length(rows[at])})" if asked == "cosine" else dot
        parts.append(f"{translate('“{word}”', word=words[at])}: {whole} = {written(fit)}")
    return "; ".join(parts) + "."


def _nearest_slips(asked: str, places: list[int], rows: list[list[int]], dots: dict[int, float]) -> tuple[Slip, ...]:
    largest, least = max(places, key=lambda at: dots[at]), min(places, key=lambda at: dots[at])
    apart = {at: math.dist(rows[0], rows[at]) for at in places}
    smallest = translate("its dot product is the smallest.")
    if dots[least] < 0:
        smallest = translate("its dot product is the smallest; a minus counts against a word.")
    found = [Slip(places.index(least), smallest)]
    if asked == "cosine":
        found.insert(
            0, Slip(places.index(largest), translate("its dot product is the largest; divide by the lengths, too."))
        )
    found.append(
        Slip(
            places.index(min(places, key=lambda at: apart[at])),
            translate("its vector is the nearest, but distance isn't the question."),
        )
    )
    return tuple(found)


def project(scene: Scene, seed: int) -> Exercise:
    """Ask for one entry of a word's query."""
    draw = Draw("project", seed, scene.text)
    (name,), note = hand_words(scene, draw, most=1)
    x, learned, column = draw.vector(3), [draw.vector(3, 2) for _ in range(3)], draw.below(3)
    query = _projected(x, learned)
    upright = scene.notation == "columns"
    shown = [list(one) for one in zip(*learned, strict=True)] if upright else learned
    parts = [row[column] for row in learned]
    other = (column + 1) % 3
    formula, line, wrong = ("q = W_Q x", "row", "column") if upright else ("q = x W_Q", "column", "row")
    line, wrong = translate(line), translate(wrong)
    transposed = sum(a * b for a, b in zip(x, learned[column], strict=True))
    slips = (
        Slip(
            transposed,
            translate(
                "did you take {wrong} {column} of W_Q, and not {line} {column}?", wrong=wrong, column=column, line=line
            ),
        ),
        Slip(float(query[other]), translate("that is dimension {other} of the query.", other=other)),
        Slip(
            sum(abs(a * b) for a, b in zip(x, parts, strict=True)),
            translate("did you add the products without their signs?"),
        ),
        Slip(
            sum(parts),
            translate("that is the sum of {line} {column}; multiply each number by x first.", line=line, column=column),
        ),
    )
    return Exercise(
        "project",
        note
        + translate(
            "The vector x of “{word}” becomes its query, {formula}. What is dimension {column} of the "
            "query? Dimensions, rows and columns count from 0.",
            word=name,
            formula=formula,
            column=column,
        ),
        (vectors(scene, "x", (name,), (x,)), table("W_Q", dimensions(3), dimensions(3), shown)),
        NumberAnswer(float(query[column]), WHOLE),
        (
            translate(
                "Only {line} {column} of W_Q is needed: {numbers}.",
                line=line,
                column=column,
                numbers=", ".join(map(written, parts)),
            ),
            translate("Multiply x and it number by number, and add up the products."),
            translate("It is {sum}.", sum=products(x, parts)),
        ),
        translate(
            "Dimension {column} of q: {sum} = {answer}.",
            column=column,
            sum=products(x, parts),
            answer=written(float(query[column])),
        ),
        slips,
    )


def _projected(x: list[int], learned: list[list[int]]) -> Tensor:
    """Use W_Q as (d_model, d_k)."""
    head = AttentionHead(len(learned), len(learned[0]))
    with torch.no_grad():
        head.query.weight.copy_(matrix(learned).mT)
        return head.attention(matrix([x]).float()).query[0].double()


def score(scene: Scene, seed: int) -> Exercise:
    """Ask for the dot product of a query and a key."""
    draw = Draw("score", seed, scene.text)
    words, note = hand_words(scene, draw, most=3)
    queries, keys = [draw.vector(3) for _ in words], [draw.vector(3) for _ in words]
    row = draw.below(len(words))
    column = (row + draw.whole(1, max(1, len(words) - 1))) % len(words)
    scores = attend(matrix(queries), matrix(keys), matrix(keys)).scores
    right, query, key = float(scores[row, column]), queries[row], keys[column]
    turned = translate(
        "did you take the key of “{query}” and the query of “{key}”? Swap them.", query=words[row], key=words[column]
    )
    asked = translate(
        "What is the score q·k of “{query}”, the query word, for “{key}”, the key word?",
        query=words[row],
        key=words[column],
    )
    slips = (
        Slip(float(scores[column, row]), turned),
        Slip(
            _dot(keys[row], key),
            translate("did you take the key of “{query}”? Take its query, since it looks.", query=words[row]),
        ),
        Slip(
            _dot(query, queries[column]),
            translate("did you take the query of “{key}”, and not its key?", key=words[column]),
        ),
        Slip(
            sum(abs(a * b) for a, b in zip(query, key, strict=True)),
            translate("did you add the products without their signs?"),
        ),
        Slip(sum(query) + sum(key), translate("did you add? Multiply instead.")),
        Slip(-right, translate("that is right except for its sign; minus times minus is plus.")),
    )
    return Exercise(
        "score",
        f"{note}{asked}",
        (vectors(scene, translate("Queries"), words, queries), vectors(scene, translate("Keys"), words, keys)),
        NumberAnswer(right, WHOLE),
        (
            translate("Take the query of “{query}” and the key of “{key}”.", query=words[row], key=words[column]),
            translate("Multiply them dimension by dimension, and add up the products."),
            translate("It is {sum}.", sum=products(query, key)),
        ),
        f"q·k: {products(query, key)} = {written(right)}.",
        slips,
    )


def _dot(left: list[int], right: list[int]) -> float:
    return float(matrix([left])[0] @ matrix([right])[0])


def scaled(scene: Scene, seed: int) -> Exercise:
    """Ask for a score divided by √d_k."""
    draw = Draw("scaled", seed, scene.text)
    words, note = hand_words(scene, draw, most=2)
    width, raw = draw.pick(_WIDTHS), draw.whole(3, 40) * draw.pick((1, 1, -1))
    query, key = (one * torch.eye(1, width, dtype=torch.float64) for one in (raw, 1))
    right, root = float(attend(query, key, key).scaled), math.sqrt(width)
    slips = (
        Slip(raw, translate("that is the score itself; it still has to be scaled.")),
        Slip(raw / width, translate("did you divide by d_k, and not by its root?")),
        Slip(raw * root, translate("did you multiply by the root of d_k?")),
        Slip(raw * width, translate("did you multiply by d_k? Divide by its root.")),
        Slip(raw / root**0.5, translate("did you take the root twice?")),
        Slip(-right, translate("that is right except for its sign.")),
    )
    return Exercise(
        "scaled",
        note
        + translate(
            "“{word}” has the score {score} for “{other}”; queries and keys have d_k = {width} numbers. "
            "What is the scaled score, to at least two decimals?",
            word=words[0],
            score=written(raw),
            other=words[-1],
            width=width,
        ),
        (),
        NumberAnswer(right, ROUNDED),
        (
            translate("A score is divided by √d_k, so that wide queries and keys don't make it large."),
            f"√{width} = {written(root)}.",
            translate("Divide: {score} / {root}.", score=written(raw), root=written(root)),
        ),
        f"{written(raw)} / √{width} = {written(raw)} / {written(root)} = {written(right)}.",
        slips,
    )
