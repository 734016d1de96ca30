"""Outputs: weighted sums stay among the values; many heads have narrower queries."""

from collections.abc import Sequence
from statistics import fmean

from attention_viz.analysis.plane import beyond, corners
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, asking_words, row_spots, short
from attention_viz.lesson.links import (
    HeadLink,
    opening_word,
    positioned_words,
    scene_link,
    trained_words,
)
from attention_viz.lesson.own_head import in_a_plane, own_place
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import counted, in_words, quoted, signed, texts, weight_texts
from attention_viz.scratch.model import Scratch
from attention_viz.trace.spelling import weight_text
from attention_viz.views import hull, side_by_side
from attention_viz.views.style.wording import share_text

_NAMED = 3
# The question names so many values by their word, and the others together.
_GIVEN = 2
# The most mixtures to choose from, and their least distance, as a part of the values' range.
_OFFERED, _APART = 4, 0.1
# Nearer to an edge than this, single precision can't say which side a point is on.
_EDGE = 1e-5


def _point(numbers: list[float]) -> str:
    return f"({', '.join(signed(number, 2) for number in numbers)})"


def _where(outside: float) -> str:
    if outside < -_EDGE:
        return translate("inside")
    return translate("on the edge") if outside <= _EDGE else translate("outside")


def _link(scene: Scene) -> HeadLink:
    return scene_link(scene, int(_CONTROL_MIXTURE.value(scene)))


def _ask_mixture(scene: Scene) -> Ask:
    """Give weights and values along the figure's first direction; ask for the mixture."""
    trace, link, (parts, right) = scene.trained(), _link(scene), _parts(scene)
    word, reasons = short(trace.query_tokens().names[link.query]), _mixtures(right, [place for _, _, place in parts])
    options = sorted(reasons)
    return Ask(
        translate("Where on this line is the output of {word}?", word=word),
        translate("The output of {word} is at {right}", word=word, right=_number(right)),
        translate("{model}, layer {layer}, head {head}: places from left to right in the figure", **_place(scene)),
        tuple(map(_number, options)),
        tuple(float(option == right) for option in options),
        shown=("",) * len(options),
        place=CatalogueHead.of(trace, link.layer, link.head),
        premise=translate(
            "{word} takes {parts}.",
            word=word,
            parts=", ".join(
                translate(
                    "{weight} from {other} (at {place})"
                    if name
                    else "{weight} from all others (on average at {place})",
                    **{"weight": weight_text(weight), "other": name, "place": _number(at)},
                )
                for name, weight, at in parts
            ),
        ),
        reasons=tuple(reasons[one] for one in options),
    )


def _parts(scene: Scene) -> tuple[list[tuple[str, float, float]], float]:
    """Return name, weight and place of the largest parts and of all others together (""), and the mixture's place."""
    trace, link = scene.trained(), _link(scene)
    labels = [short(name) for name in trace.query_tokens().names]
    flat, _ = in_a_plane(trace, link.layer, link.head)
    weights, places = flat.attention(0).weights[0, link.query].double(), flat.attention(0).value[0, :, 0].double()
    ranked = weights.argsort(descending=True, stable=True).tolist()
    parts = [(labels[key], float(weights[key]), float(places[key])) for key in ranked[:_GIVEN]]
    rest = ranked[_GIVEN:]
    if share := float(weights[rest].sum()):
        parts.append(("", share, float(weights[rest] @ places[rest]) / share))
    return parts, float(weights @ places)


def _mixtures(right: float, places: Sequence[float]) -> dict[float, str]:
    """Return the right mixture and usual mistakes, each with a reason: only one value, without weights, added up."""
    found, apart = {right: ""}, _APART * (max(places) - min(places))
    alone = translate("That is one of the places alone; each counts, by its weight.")
    for wrong, why in (
        (places[0], alone),
        (fmean(places), translate("That is the plain mean of the places; each counts by its weight.")),
        (sum(places), translate("That adds up the places without their weights.")),
        (places[-1], alone),
        (-right, translate("That has the wrong sign.")),
    ):
        if len(found) < _OFFERED and all(abs(wrong - one) > apart for one in found):
            found[wrong] = why
    return found


def _sum(parts: Sequence[tuple[str, float, float]], right: float) -> str:
    """Write the mixture out."""
    places = [_number(place) for _, _, place in parts]
    products = [
        f"{weight_text(weight)} · {f'({place})' if place[0] == '−' else place}"
        for (_, weight, _), place in zip(parts, places, strict=True)
    ]
    return f"{' + '.join(products)} = {_number(right)}"


def _number(place: float) -> str:
    return signed(place, 2)


def _place(scene: Scene) -> dict[str, object]:
    link = _link(scene)
    return {"model": scene.called, "layer": link.layer, "head": link.head}


def _show_mixture(scene: Scene) -> Shown:
    trace, link = scene.trained(), _link(scene)
    labels, query = trace.query_tokens().names, link.query
    flat, share = in_a_plane(trace, link.layer, link.head)
    call, row = flat.attention(0).head(0), trace.weights(link.layer, link.head)[query]
    values, output = (tensor.double().cpu().numpy() for tensor in (call.value, call.output[query]))
    ranked = row.argsort(descending=True, stable=True).tolist()
    terms = [f"{weight_text(float(row[key]))} · {_point(values[key].tolist())}" for key in ranked[:_NAMED]]
    facts = {
        **texts(**_place(scene), d_v=trace.attention(link.layer).value.shape[-1]),
        **quoted(labels, word=query, best=ranked[0]),
        **weight_texts(weight=row[ranked[0]], total=row.sum()),
        "sum": " + ".join(terms) + (" + …" if len(ranked) > _NAMED else ""),
        "output": _point(output.tolist()),
        "share": share_text(share),
        "corners": counted(len(corners(values)), "corner"),
        "where": _where(beyond(values, output)),
    }
    says = translate(
        "{mixed}, rounded. In the figure, the output of “{word}” is at {output}; “{best}” pulls most, with {weight}.",
        **{name: facts[name] for name in ("word", "output", "best", "weight")},
        mixed=_sum(*_parts(scene)),
    )
    figure = hull(flat, 0, 0, query, theme=scene.theme)
    # The plane's directions, which mix all numbers of a value.
    figure.update_layout(xaxis_title_text="first direction of the values", yaxis_title_text="second direction")
    return Shown(facts, figure, says)


_CONTROL_MIXTURE = Control("Query word", positioned_words, opening_word, words=True)


_D_MODEL = 8
_HEADS = (1, 2, 4, 8)


def _ask_heads(scene: Scene) -> Ask:
    """Ask what a head reads: not a part of its own, but the whole vector."""
    heads = int(_CONTROL_HEADS.value(scene))
    read = _inputs_read(scene, heads)
    options = sorted({1, heads, _D_MODEL // heads, _D_MODEL})
    return Ask(
        translate("How many of the {count} numbers does each head read?", count=_D_MODEL),
        translate("Each head reads all {count} numbers", count=read),
        translate("heads of our own ({heads}): numbers that change a head’s query", heads=counted(heads, "head")),
        tuple(counted(option, "number") for option in options),
        tuple(float(option == read) for option in options),
        shown=("",) * len(options),
        premise=translate(
            "Each word has {count} numbers, and each of its {heads} has a query of {width}.",
            **{"count": _D_MODEL, "heads": counted(heads, "head"), "width": _D_MODEL // heads},
        ),
        reasons=tuple("" if option == read else _why_not(option, heads) for option in options),
    )


def _why_not(option: int, heads: int) -> str:
    if option == _D_MODEL // heads:
        return translate("A head’s query has that many numbers, and a matrix makes it from the whole vector.")
    if option == heads:
        return translate("That is the number of heads; each has a matrix for the whole vector.")
    return translate("Each number of a query adds up many numbers of the word, each times a learned one.")


def _inputs_read(scene: Scene, heads: int) -> int:
    """Count the numbers of a word that change a head's query; the fewest of all heads."""
    matrix = Scratch(_D_MODEL, heads, scene.seed).projections()["query"].weight
    return min(int(part.any(dim=1).sum()) for part in matrix.split(_D_MODEL // heads, dim=1))


def _show_heads(scene: Scene) -> Shown:
    heads = int(_CONTROL_HEADS.value(scene))
    scratch = Scratch(_D_MODEL, heads, scene.seed)
    trace = scratch.trace(scene.text)
    query = own_place(scene)
    favourites = [int(weights[query].argmax()) for weights in trace.attention(0).weights]
    joined = trace.layer(0).joined
    assert joined is not None  # our own module keeps it
    facts = {
        **texts(d_model=_D_MODEL, parameters=sum(matrix.weight.numel() for matrix in scratch.projections().values())),
        **texts(columns=joined.shape[1]),
        "word": in_words(scene.names[query]),
        "heads": counted(heads, "head"),
        "width": counted(trace.attention(0).query.shape[-1], "number"),
        "favourites": _favourites_text(scene.names, favourites),
        "rows": counted(joined.shape[0], "row"),
    }
    says = translate(
        "Each head’s matrices have {d_model} rows, one per number of a word. {heads} of ours, with random numbers: "
        "“{word}” looks most at {favourites}.",
        **{name: facts[name] for name in ("d_model", "heads", "word", "favourites")},
    )
    figure = side_by_side(trace, 0, theme=scene.theme)
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene)), drawn=True)


def _favourites_text(words: Sequence[str], favourites: Sequence[int]) -> str:
    heads_by_key: dict[int, list[int]] = {}
    for head, key in enumerate(favourites):
        heads_by_key.setdefault(key, []).append(head)
    if len(favourites) == 1:
        return f"“{in_words(words[favourites[0]])}”"
    return ", ".join(
        translate("“{word}” (head {head})", word=in_words(words[key]), head=heads[0])
        if len(heads) == 1
        else translate("“{word}” (heads {heads})", word=in_words(words[key]), heads=", ".join(map(str, heads)))
        for key, heads in heads_by_key.items()
    )


_CONTROL_HEADS = Control(
    "Heads", lambda scene: {str(heads): counted(heads, "head") for heads in _HEADS}, lambda scene: "2"
)

LESSONS = {
    "mixture": Lesson(
        "The weighted sum",
        6,
        _ask_mixture,
        _show_mixture,
        _CONTROL_MIXTURE,
        "output",
        deeper=("steps",),
        idea=(
            "A word’s output is a mixture: each value times its weight, all added up. A value is a list of numbers. To "
            "make it easy, each value here is one number: its place on a line."
        ),
    ),
    "heads": Lesson(
        "Many heads",
        6,
        _ask_heads,
        _show_heads,
        _CONTROL_HEADS,
        "head",
        deeper=("", "heads"),
        words=trained_words,
        idea=(
            "A row of shares adds up to 1, so a word that needs several things needs several rows. A layer therefore "
            "has several heads, each with queries, keys and values of its own, which are short vectors."
        ),
    ),
}
