"""Tasks with trained heads: links, the effects of ablation, and a language model's induction head."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from attention_viz.edits.effects import moved_output
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.exercise import Exercise, OptionAnswer, Slip, Table, written
from attention_viz.lesson.language import Twice
from attention_viz.lesson.links import (
    HeadLink,
    opening_position,
    scene_link,
    strongest_link,
    telling_positions,
    word_positions,
)
from attention_viz.lesson.scene import REAL_MODEL, Scene
from attention_viz.lesson.tasks.drawing import EXAMPLE, Draw, named, percent, table
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import is_pronoun, listed
from attention_viz.trace.trace import Trace

_CANDIDATES = 4
# Columns of a table of weights: more don't fit beside each other.
_MOST_SHOWN = 7
# The lead that makes the best option clear: of a head that links two words over the others, of a key over the others.
_MARGIN = 0.02
_DIGITS = 3
# Heads tried per exercise, and how many times the effect of each other the right one must have.
_TRIED, _LEAD = 8, 1.5
_Place = tuple[int, int]


def _reading(scene: Scene, least: int) -> tuple[Trace, str]:
    trace = scene.trained()
    toy = translate(
        "{model} isn't installed where this page was made, so this is a toy, and its sentence is “{text}”.",
        model=REAL_MODEL,
        text=scene.read,
    )
    if len(word_positions(trace)) >= least:
        return trace, "" if scene.model == REAL_MODEL else f"{toy} "
    note = translate(
        "The chosen sentence has fewer than {least} words that the model reads, so this is about “{example}” here.",
        least=least,
        example=EXAMPLE,
    )
    return scene.run(scene.model, EXAMPLE), f"{note} "


def _names(trace: Trace) -> tuple[str, ...]:
    return named(trace.query_tokens().names)


def _place(layer: int, head: int) -> str:
    return translate("layer {layer}, head {head}", layer=layer, head=head)


def strongest(scene: Scene, seed: int) -> Exercise:
    """Ask for a word's strongest key in the lesson's head."""
    draw = Draw("strongest", seed, scene.text)
    trace, note = _reading(scene, 3)
    places, names = word_positions(trace), _names(trace)
    # Not the lesson's first word, whose row is on the page already.
    telling = telling_positions(trace, places)
    query = draw.pick([at for at in telling if note or at != opening_position(trace)] or telling)
    link = strongest_link(trace, query) if note else scene_link(scene, query)
    others = draw.order([at for at in places if at not in (query, link.key)])[: _CANDIDATES - 1]
    options = sorted([link.key, *others])
    weights = trace.weights(link.layer, link.head)
    row = {at: round(float(weights[query, at]), _DIGITS) for at in options}
    right = frozenset(at for at, key in enumerate(options) if row[key] == max(row.values()))
    back = max(options, key=lambda key: float(weights[key, query]))
    most = written(max(row.values()))
    slips = [
        Slip(
            options.index(back),
            translate("that one looks most at “{word}”; the question is where “{word}” looks.", word=names[query]),
        )
    ]
    slips += [
        Slip(
            at,
            translate(
                "“{word}” takes {weight} from “{other}”, and {most} from another.",
                word=names[query],
                weight=written(row[key]),
                other=names[key],
                most=most,
            ),
        )
        for at, key in enumerate(options)
        if key != back
    ]
    look = "" if note else translate("Guess first; with “{word}” chosen, the figure shows it.", word=names[query])
    wrong = [names[key] for at, key in enumerate(options) if at not in right]
    return Exercise(
        "strongest",
        note
        + translate(
            "In {place} of {model}, which of these does “{word}” look at most?",
            place=_place(link.layer, link.head),
            model=scene.model,
            word=names[query],
        ),
        (),
        OptionAnswer(tuple(names[key] for key in options), right),
        (
            translate("Which of them belongs to “{word}” in this text, or says something about it?", word=names[query]),
            *_last_hints(row.values(), wrong),
        ),
        _working(names[query], names, row),
        tuple(slips),
        look,
    )


def _last_hints(weights: Collection[float], wrong: Sequence[str]) -> tuple[str, str]:
    heaviest = listed([written(one) for one in sorted(weights, reverse=True)])
    return (
        translate("From them it takes {weights}.", weights=heaviest),
        translate("It isn't “{word}”.", word=wrong[0])
        if wrong
        else translate("It takes as much from each: any of them is right."),
    )


def _working(word: str, names: Sequence[str], row: Mapping[int, float]) -> str:
    parts = [translate("{weight} from “{other}”", weight=written(one), other=names[key]) for key, one in row.items()]
    return translate("“{word}” takes: {listing}.", word=word, listing="; ".join(parts))


def head(scene: Scene, seed: int) -> Exercise:
    """Ask which of four heads links a pronoun or late word backward."""
    draw = Draw("head", seed, scene.text)
    trace, note = _reading(scene, 3)
    names, link = _names(trace), _backward(trace, draw)
    heads = sorted([(link.layer, link.head), *_weaker(trace, link, draw)])
    rows = torch.stack([trace.weights(*one)[link.query] for one in heads])
    shown_table = _shown(rows, link, names, [f"{layer}·{one}" for layer, one in heads])
    column = [row[shown_table.columns.index(names[link.key])] for row in shown_table.numbers]
    right = heads.index((link.layer, link.head))
    tops = [names[int(row.argmax())] for row in rows]
    slips = tuple(
        Slip(
            at,
            translate(
                "there it takes {weight} from “{key}”, and most from “{other}”.",
                weight=written(one),
                key=names[link.key],
                other=tops[at],
            ),
        )
        for at, one in enumerate(column)
        if at != right
    )
    listing = [f"{_place(*one)}: {written(at)}" for one, at in zip(heads, column, strict=True)]
    query, key = names[link.query], names[link.key]
    return Exercise(
        "head",
        note
        + translate(
            "Each row shows the shares that “{query}” takes in one head of {model}. Which head links "
            "“{query}” to “{key}”?",
            query=query,
            model=scene.model,
            key=key,
        ),
        (shown_table,),
        OptionAnswer.written(lambda: tuple(_place(*one) for one in heads), frozenset({right})),
        (
            translate("Each row belongs to one head, and “{query}” is the query word of all.", query=query),
            translate("Look down the column of “{key}”: where is the largest number?", key=key),
        ),
        translate("From “{query}” to “{key}”: {listing}.", query=query, key=key, listing="; ".join(listing)),
        slips,
    )


def _backward(trace: Trace, draw: Draw) -> HeadLink:
    """Prefer pronouns, else words from the third on."""
    places, texts = word_positions(trace), trace.query_tokens().texts
    late = places[2:]
    query = draw.pick([at for at in late if is_pronoun(texts[at])] or telling_positions(trace, late))
    found = strongest_link(trace, query)
    if found.key < query:
        return found
    # Not the word next to it, which heads find by its place alone.
    before = telling_positions(trace, [at for at in places if at < query][:-1])
    return max(
        (
            HeadLink(layer, one, query, key, weight)
            for layer, rows in zip(trace.layer_numbers(), _rows(trace, query), strict=True)
            for one, row in enumerate(rows)
            for key, weight in zip(before, row[list(before)].tolist(), strict=True)
        ),
        key=lambda link: link.weight,
    )


def _rows(trace: Trace, query: int) -> list[Tensor]:
    """Return for each layer (head, key)."""
    return [trace.attention(layer).weights[:, query] for layer in trace.layer_numbers()]


def _weaker(trace: Trace, link: HeadLink, draw: Draw) -> list[tuple[int, int]]:
    weaker = [
        (layer, one)
        for layer, rows in zip(trace.layer_numbers(), _rows(trace, link.query), strict=True)
        for one, weight in enumerate(rows[:, link.key].tolist())
        if weight < link.weight - _MARGIN
    ]
    return draw.order(weaker)[: _CANDIDATES - 1]


def _shown(rows: Tensor, link: HeadLink, names: Sequence[str], heads: Sequence[str]) -> Table:
    heavy = rows.amax(dim=0).argsort(descending=True).tolist()
    drawn = sorted({link.key, *heavy[: _MOST_SHOWN - 1]})
    rest = [at for at in range(len(names)) if at not in drawn]
    columns = [names[at] for at in drawn] + ([translate("all others")] if rest else [])
    numbers = [
        [round(float(row[at]), 2) for at in drawn] + ([round(float(row[rest].sum()), 2)] if rest else [])
        for row in rows
    ]
    return table(translate("Weights of “{query}”, by layer·head", query=names[link.query]), heads, columns, numbers)


def matters(scene: Scene, seed: int) -> Exercise:
    """Ask which of four ablated heads changes the output most."""
    draw = Draw("matters", seed, scene.text)
    trace = scene.trained()
    largest = _largest(trace)
    tried = draw.order([*largest])[:_TRIED]
    lengths = {one: _added(trace, *one) for one in tried}
    effects = _leading({one: _moved(scene, trace, *one) for one in tried}, lengths)
    heads = sorted(effects)
    moved = [round(effects[one], _DIGITS) for one in heads]
    looks = [round(largest[one], 2) for one in heads]
    right = frozenset(at for at, one in enumerate(moved) if one == max(moved))
    places, added = [_place(*one) for one in heads], [round(lengths[one], 2) for one in heads]
    listing = "; ".join(f"{place}: {percent(by)}" for place, by in zip(places, moved, strict=True))
    second, *_, least = sorted((at for at in range(len(heads)) if at not in right), key=lambda at: -moved[at])
    return Exercise(
        "matters",
        translate(
            "Each of these heads of {model} is ablated in turn: its output becomes 0. Which one moves the "
            "model's output most?",
            model=scene.model,
        ),
        (
            table(
                translate(
                    "On average over words: the weight on the strongest key, and the length of the sum of values"
                ),
                places,
                (translate("weight"), translate("length")),
                [*zip(looks, added, strict=True)],
            ),
        ),
        OptionAnswer.written(lambda: tuple(_place(*one) for one in heads), right),
        (
            translate(
                "The weights say where a head looks. A longer vector moves the output more, unless later layers make "
                "little of it."
            ),
            translate(
                "Ablating {place} moves the output by {effect} of its length.",
                place=places[least],
                effect=percent(moved[least]),
            ),
            translate(
                "It isn't {place} either: ablating that moves the output by {effect}.",
                place=places[second],
                effect=percent(moved[second]),
            ),
        ),
        translate(
            "Change of the output, divided by its length, on average over the tokens: {listing}.", listing=listing
        ),
        _effect_slips(looks, moved),
        translate("Guess first; the figure of each layer shows it."),
    )


def _effect_slips(looks: Sequence[float], moved: Sequence[float]) -> tuple[Slip, ...]:
    boldest = max(range(len(looks)), key=looks.__getitem__)
    largest = percent(max(moved))
    return (
        Slip(boldest, translate("its weights are the largest, but weights don't show a head's effect on the output.")),
        *(
            Slip(
                at,
                translate(
                    "ablating it moves the output by {effect}; another moves it by {largest}.",
                    effect=percent(one),
                    largest=largest,
                ),
            )
            for at, one in enumerate(moved)
            if at != boldest
        ),
    )


def _leading(effects: Mapping[_Place, float], lengths: Mapping[_Place, float]) -> dict[_Place, float]:
    best, *others = sorted(effects, key=lambda one: -effects[one])
    far = [one for one in others if effects[best] >= _LEAD * effects[one]]
    far.sort(key=lambda one: lengths[one] >= lengths[best])
    few = _CANDIDATES - 1
    return {one: effects[one] for one in (best, *(far if len(far) >= few else others[-few:])[:few])}


def _largest(trace: Trace) -> dict[tuple[int, int], float]:
    counted = list(trace.query_tokens().counted) or list(range(len(trace.query_tokens())))
    return {
        (layer, one): float(mean)
        for layer in trace.layer_numbers()
        for one, mean in enumerate(trace.attention(layer).weights[:, counted].amax(dim=-1).mean(dim=-1))
    }


def _added(trace: Trace, layer: int, one: int) -> float:
    """Return the mean length of a head's weighted sums of values."""
    call = trace.attention(layer).head(one)
    return float((call.weights.double() @ call.value.double()).norm(dim=-1).mean())


def _moved(scene: Scene, before: Trace, layer: int, one: int) -> float:
    """Return relative changes, averaged over tokens."""
    return float(moved_output(before, scene.trained((Ablate(layer, one),))).mean())


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
