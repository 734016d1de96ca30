"""Scores of every query with every key, and the softmax that makes shares of them."""

import math

from torch import Tensor

from attention_viz.edits.kinds.temperature import Temperature
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, short
from attention_viz.lesson.links import (
    HeadLink,
    asking_position,
    opening_word,
    positioned_words,
    pressed_positions,
    pressed_words,
    scene_link,
)
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.openings.planes import TurnedQuery
from attention_viz.lesson.openings.shares import ScoreSliders
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, labelled, offered, quoted, signed, signs, texts, weight_texts
from attention_viz.steps.arithmetic import Arithmetic, open_cell
from attention_viz.steps.head import open_head, row_statistics
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views import products, shares

# The text writes out that many products, the largest.
_NAMED = 4


def _source(scene: Scene, link: HeadLink) -> str:
    return translate("{model}, layer {layer}, head {head}", model=scene.called, layer=link.layer, head=link.head)


def _written(cell: Arithmetic) -> str:
    ranked = sorted(cell.terms, key=lambda term: -abs(term.product))
    products = [f"{_factor(term.factors[0][1])} · {_factor(term.factors[1][1])}" for term in ranked[:_NAMED]]
    if others := ranked[_NAMED:]:
        total = _factor(sum(term.product for term in others))
        products.append(translate("{total} from {count} more", total=total, count=len(others)))
    return " + ".join(products)


def _factor(value: float) -> str:
    written = signed(value, 2)
    return f"({written})" if written[0] == "−" else written


def _pair(trace: Trace, link: HeadLink, query: int) -> tuple[int, float, float, float]:
    """Return the key that suits a query best, both lengths, and the angle between them in degrees."""
    call = trace.attention(link.layer).head(link.head)
    key = int(call.scores[query].argmax())
    one, other = call.query[query].double(), call.key[key].double()
    lengths = float(one.norm()), float(other.norm())
    cosine = float(one @ other) / ((lengths[0] * lengths[1]) or 1.0)
    return key, *lengths, math.degrees(math.acos(max(-1.0, min(1.0, cosine))))


def _ask_scores(scene: Scene) -> Ask:
    """Use a real head: seeded numbers say nothing of words."""
    trace, query = scene.trained(), int(_CONTROL_SCORES.value(scene))
    link, labels = scene_link(scene, query), trace.query_tokens().names
    scores = trace.attention(link.layer).scores[link.head, query].tolist()
    key, length, other_length, angle = _pair(trace, link, query)
    facts = {"word": short(labels[query]), "other": short(labels[key]), "angle": f"{angle:.1f}"}
    facts |= {"score": signed(scores[key], 2), "most": signed(length * other_length, 2)}
    facts |= {"half": signed(length * other_length / 2, 2), "goal": str(TurnedQuery.goal)}
    return Ask(
        translate("Turn the query of {word} until its score is half of the largest", **facts),
        translate("At {goal}° the score is half; in the model the angle is {angle}°: {score}", **facts),
        _source(scene, link),
        labels,
        tuple(scores),
        shown=tuple(signed(score, 1) for score in scores),
        pressed=pressed_positions(trace),
        query=query,
        place=CatalogueHead.of(trace, link.layer, link.head, (query, key)),
        premise=translate(
            "If the query of {word} points the same way as the key of {other}, their score is largest: {most}.", **facts
        ),
        opening=TurnedQuery(
            in_words(labels[query]), in_words(labels[key]), (length, other_length), angle, _turned_replies(facts)
        ),
    )


def _turned_replies(facts: dict[str, str]) -> tuple[Reply, Reply, Reply]:
    return (
        Reply(
            "right",
            translate(
                "Right: the cosine of {goal}° is a half, so the score is {half}. The model’s angle of {angle}° gives "
                "{score}.",
                **facts,
            ),
        ),
        Reply(
            "near",
            translate(
                "Nearly: it is half at {goal}°, whose cosine is a half. The model’s angle of {angle}° gives {score}.",
                **facts,
            ),
        ),
        Reply(
            "wrong",
            translate(
                "Not quite: the score follows the cosine of the angle. It falls slowly at first, is half ({half}) at "
                "{goal}°, and zero at a right angle. The model’s angle of {angle}° gives {score}.",
                **facts,
            ),
        ),
    )


def _show_scores(scene: Scene) -> Shown:
    trace, query = scene.trained(), int(_CONTROL_SCORES.value(scene))
    link, labels = scene_link(scene, query), trace.query_tokens().names
    layer, head = link.layer, link.head
    scores = trace.attention(layer).scores[head]
    row = scores[query]
    key, length, other_length, angle = _pair(trace, link, query)
    cell = open_cell(open_head(trace, layer, head), "scores", query, key)
    facts = {
        **texts(layer=layer, head=head, d_k=len(cell.terms), model=scene.called, angle=f"{angle:.1f}"),
        **quoted(labels, word=query, other=key),
        **signs(2, score=cell.total, lowest=row.min(), length=length, other_length=other_length),
        **texts(sum=_written(cell), tokens=len(row), cells=scores.numel()),
    }
    figure = products(trace, layer, head, query, key, notation=scene.notation, theme=scene.theme)
    says = translate(
        "The query of {word} suits the key of {other} best, with {score}.",
        word=short(labels[query]),
        other=short(labels[key]),
        score=facts["score"],
    )
    return Shown(facts, figure, says)


_CONTROL_SCORES = Control("Query word", positioned_words, opening_word)


_TEMPERATURES = {
    "0.25": "0.25: much sharper",
    "0.5": "0.5: sharper",
    "1": "1: as it is",
    "2": "2: more even",
    "4": "4: much more even",
}
# The scores to set have names; what is left has one score.
_NAMED_SCORES = 2
# Above this difference, the quotient of two shares is too large to tell anything.
_FAR = 10


def _steady(scene: Scene) -> HeadLink:
    return scene_link(scene, asking_position(scene))


def _trace(scene: Scene) -> Trace:
    temperature, link = float(_CONTROL_SOFTMAX.value(scene)), _steady(scene)
    edits = () if temperature == 1 else (Temperature(temperature, link.layer, link.head),)
    return scene.trained(edits)


def _ask_softmax(scene: Scene) -> Ask:
    trace, temperature, link = _trace(scene), float(_CONTROL_SOFTMAX.value(scene)), _steady(scene)
    labels = tuple(offered(trace.query_tokens().names).values())
    opened, source = open_head(trace, link.layer, link.head), _source(scene, link)
    row = opened.weights[link.query].double()
    sliders = _sliders(labels, row, opened.attention.scaled[link.query].double())
    facts = {"word": short(labels[link.query]), "shares": _shares(sliders.names, sliders.wanted)}
    facts |= _gap(labels, row, opened.attention.scaled[link.query])
    return Ask(
        translate("Set the scores of {word} so that the softmax makes these shares: {shares}", **facts),
        translate("Only differences count: the score of {first} is {gap} above that of {second}", **facts),
        source if temperature == 1 else f"{source}, T = {temperature:g}",
        labels,
        tuple(row.tolist()),
        shares=True,
        pressed=pressed_words(trace),
        word=True,
        query=link.query,
        place=CatalogueHead.of(trace, link.layer, link.head, (link.query, int(row.argmax()))),
        opening=sliders,
        premise=_divided(scene, link) if temperature == 1 else "",
    )


def _divided(scene: Scene, link: HeadLink) -> str:
    """Say how the lesson's largest score enters the softmax."""
    trace = scene.trained()
    call, labels = trace.attention(link.layer).head(link.head), trace.query_tokens().names
    best = int(call.scores[link.query].argmax())
    return translate(
        "Scores are divided by √{width} first; the next lesson says why. With {other}, {word} has {score} ÷ √{width} = "
        "{entry}.",
        **{"width": call.query.shape[-1], "word": short(labels[link.query]), "other": short(labels[best])},
        **signs(2, score=call.scores[link.query, best], entry=call.scaled[link.query, best]),
    )


def _shares(names: tuple[str, ...], wanted: tuple[float, ...]) -> str:
    return ", ".join(f"{name} {weight_text(share)}" for name, share in zip(names, wanted, strict=True))


def _sliders(labels: tuple[str, ...], row: Tensor, scores: Tensor) -> ScoreSliders:
    """Take the two largest shares, and all others as one word: its exponential is the sum of theirs."""
    first, *_ = ranked = [int(at) for at in row.argsort(descending=True, stable=True) if row[at] > 0]
    named, others = ranked[:_NAMED_SCORES], ranked[_NAMED_SCORES:]
    names = [in_words(labels[at]) for at in named]
    found = [(float(row[at]), float(scores[at])) for at in named]
    if others:
        names.append(
            in_words(labels[others[0]])
            if len(others) == 1
            else translate("the other {count} as one", count=len(others))
        )
        found.append((float(row[others].sum()), float(scores[others].logsumexp(dim=-1))))
    wanted, own = tuple(share for share, _ in found), tuple(score for _, score in found)
    facts = {"times": f"{float(row[first] / row[named[-1]]):.1f}", **_gap(labels, row, scores)}
    replies = _slid_replies(facts)
    if own[0] - own[len(named) - 1] > _FAR:
        far = translate(
            "The share of {second} is almost 0, so the score of {first} must be far larger. The model has {high} and "
            "{low}.",
            **facts,
        )
        replies = (
            replies[0],
            Reply("near", translate("Nearly. {why}", why=far)),
            Reply("wrong", translate("Not quite. {why}", why=far)),
        )
    return ScoreSliders(tuple(names), wanted, own, replies)


def _gap(labels: tuple[str, ...], row: Tensor, scores: Tensor) -> dict[str, str]:
    """Name the two largest shares, their scores and the difference."""
    first, *others = (int(at) for at in row.argsort(descending=True, stable=True) if row[at] > 0)
    second = others[0] if others else first
    return {
        **{"first": short(labels[first]), "second": short(labels[second])},
        **signs(2, gap=scores[first] - scores[second], high=scores[first], low=scores[second]),
    }


def _slid_replies(facts: dict[str, str]) -> tuple[Reply, Reply, Reply]:
    return (
        Reply(
            "right",
            translate(
                "Right. Many settings are: only the differences between scores count. The model has {high} for "
                "{first} and {low} for {second}.",
                **facts,
            ),
        ),
        Reply(
            "near",
            translate(
                "Nearly. {first} has {times} times the share of {second}, so its score must be {gap} larger, wherever "
                "both are. The model has {high} and {low}.",
                **facts,
            ),
        ),
        Reply(
            "wrong",
            translate(
                "Not quite. {first} is to have {times} times the share of {second}, so its score must be {gap} larger: "
                "e to the power of {gap} is {times}. The model has {high} and {low}.",
                **facts,
            ),
        ),
    )


def _show_softmax(scene: Scene) -> Shown:
    temperature, trace, link = float(_CONTROL_SOFTMAX.value(scene)), _trace(scene), _steady(scene)
    opened, labels = open_head(trace, link.layer, link.head), trace.query_tokens().names
    row = opened.weights[link.query]
    # The second largest: for the largest, e to the power of 0 shows nothing.
    ranked = row.argsort(descending=True, stable=True).tolist()
    best, key = ranked[0], ranked[min(1, len(ranked) - 1)]
    cell = open_cell(opened, "weights", link.query, key)
    term = cell.terms[key]
    statistics = row_statistics(opened.weights)
    even = row_statistics(row.new_full((1, len(row)), 1 / len(row)))
    raw = scene.trained().attention(link.layer).scores[link.head, link.query]
    facts = {
        **texts(d_k=trace.attention(link.layer).query.shape[-1], temperature=f"{temperature:g}"),
        **quoted(labels, word=link.query, best=best, other=key),
        **weight_texts(most_weight=row[best], weight=cell.total, total=row.sum()),
        **signs(2, exponential=term.product, sum=cell.sum, score=raw[best]),
        **signs(
            2, entry=term.factors[0][1], largest=opened.attention.scaled[link.query, best], less=term.factors[1][1]
        ),
        **signs(2, entropy=statistics.entropy[link.query], most_entropy=even.entropy[0]),
    }
    says = translate(
        "At a temperature of {temperature}, {word} takes {most} from {best}; its weights add up to {total}, their "
        "entropy is {entropy}.",
        **texts(temperature=facts["temperature"], most=facts["most_weight"], total=facts["total"]),
        **texts(word=short(labels[link.query]), best=short(labels[best]), entropy=facts["entropy"]),
    )
    return Shown(facts, shares(trace, link.layer, link.head, link.query, theme=scene.theme), says)


_CONTROL_SOFTMAX = Control("Temperature", lambda scene: labelled(_TEMPERATURES), lambda scene: "1")

LESSONS = {
    "scores": Lesson(
        "Scores",
        6,
        _ask_scores,
        _show_scores,
        _CONTROL_SCORES,
        "score",
        deeper=("steps",),
        idea=(
            "A query and a key are arrows: lists of numbers with a direction and a length. Their score is their dot "
            "product: multiply them number by number, and add up."
        ),
    ),
    "softmax": Lesson(
        "Softmax",
        6,
        _ask_softmax,
        _show_softmax,
        _CONTROL_SOFTMAX,
        "temperature",
        deeper=("steps",),
        trained_word=True,
        idea=(
            "The softmax makes shares of scores: it raises the number e (about 2.72) to the power of each score, and "
            "divides each result by the sum of all."
        ),
    ),
}
