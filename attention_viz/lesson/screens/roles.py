"""Queries, keys and values: three learned matrices give each word three vectors."""

from typing import NamedTuple

from torch.nn.functional import normalize

from attention_viz.lesson.figures.panels import Panel, panels
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, asking_words, row_spots, short
from attention_viz.lesson.links import asking_position, scene_link, trained_words, word_positions
from attention_viz.lesson.own_head import D_K, D_MODEL, own_head, own_place
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, offered, quoted, signed, signs, texts, weight_texts
from attention_viz.operation.attention import attend
from attention_viz.scratch.model import Scratch

# Two numbers of that size that differ by less are the same but for rounding.
_SAME = 0.005


class _Role(NamedTuple):
    name: str
    letter: str
    width: int


_ROLES = {
    "query": _Role("query", "Q", D_K),
    "key": _Role("key", "K", D_K),
    "value": _Role("value", "V", 3),
    "wide": _Role("value", "V", 6),
}
_NAMES = {"query": "query", "key": "key", "value": "value"}
# The least cosine of two keys that are alike, and how far that of their values is below.
_ALIKE, _APART = 0.5, 0.1
# The places of the panels in the figure: all vectors, the matrix, and their product.
_MATRIX = "2"


def _both_ways(scene: Scene) -> tuple[int, int, float, float]:
    """Return query and key of the lesson's link, their score, and the score of the reverse."""
    link = scene_link(scene, asking_position(scene))
    scores = scene.trained().attention(link.layer).scores[link.head]
    return link.query, link.key, float(scores[link.query, link.key]), float(scores[link.key, link.query])


def _ask_roles(scene: Scene) -> Ask:
    """Use a trained head: seeded matrices say nothing of words."""
    trace, link = scene.trained(), scene_link(scene, asking_position(scene))
    query, key, forth, back = _both_ways(scene)
    labels = trace.query_tokens().names
    words = {"word": short(labels[query]), "other": short(labels[key])}
    there, reverse = signed(forth, 2), signed(back, 2)
    same, opposite = abs(forth - back) < _SAME, abs(forth + back) < _SAME
    return Ask(
        translate("Does {other} with its query fit the key of {word} just as well?", **words),
        translate("Yes: the reverse is {back}, too", back=reverse)
        if same
        else translate("No: the reverse is {back}", back=reverse),
        translate("{model}, layer {layer}, head {head}: query · key", **_place(scene)),
        (
            translate("yes, {number} again", number=there),
            translate("no, another number"),
            translate("no, {number}", number=signed(-forth, 2)),
        ),
        (float(same), float(not same and not opposite), float(opposite and not same)),
        shown=("", "" if same or opposite else reverse, ""),
        place=CatalogueHead.of(trace, link.layer, link.head),
        premise=translate(
            "The dot product of the query of {word} with the key of {other} is {number}.", number=there, **words
        ),
        reasons=()
        if same or opposite
        else (
            translate("The reverse compares two other vectors: the query of {other} and the key of {word}.", **words),
            "",
            translate("Swapping the words makes no minus sign: it compares two other vectors."),
        ),
    )


def _place(scene: Scene) -> dict[str, object]:
    link = scene_link(scene, asking_position(scene))
    return {"model": scene.called, "layer": link.layer, "head": link.head}


def _contrast(scene: Scene) -> str:
    """Name two words with keys alike and values unlike in the lesson's head; "" if there are none."""
    trace, link = scene.trained(), scene_link(scene, asking_position(scene))
    call, words = trace.attention(link.layer).head(link.head), list(word_positions(trace))
    keys, values = (normalize(vectors[words].detach().double().cpu(), dim=-1) for vectors in (call.key, call.value))
    found, passed = keys @ keys.mT, values @ values.mT
    apart = (found - passed).masked_fill(found < _ALIKE, 0).triu(1)
    one, other = divmod(int(apart.argmax()), len(words))
    if float(apart[one, other]) < _APART:
        return ""
    names = quoted(trace.query_tokens().names, one=words[one], two=words[other])
    return translate(
        "In this head, the keys of “{one}” and “{two}” are alike: their cosine is {keys}. So who finds one finds the "
        "other. Yet their values have only {values}: each passes on something else.",
        **names,
        **signs(2, keys=found[one, other], values=passed[one, other]),
    )


def _show_roles(scene: Scene) -> Shown:
    trace, link = scene.trained(), scene_link(scene, asking_position(scene))
    query, key, forth, back = _both_ways(scene)
    x, words = trace.layer(0).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    plain = attend(x[None], x[None], x[None], scale=1.0).weights[0].diagonal()[words].mean()
    weights = trace.weights(link.layer, link.head)
    role = _ROLES[_CONTROL_ROLES.value(scene)]
    facts = {
        **texts(**_place(scene)),
        **texts(d_model=D_MODEL, d_k=D_K, width=role.width, role=translate(_NAMES[role.name])),
        **quoted(trace.query_tokens().names, word=query, other=key),
        **signs(2, forth=forth, back=back),
        **weight_texts(plain=plain, own=weights.diagonal()[words].mean()),
        "contrast": _contrast(scene),
        "here": in_words(scene.names[own_place(scene)]),
        "formula.role": _formula(role, scene.notation),
    }
    says = translate(
        "“{word}” → “{other}” is {forth}. The reverse is {back}, since another query meets another key. The figure "
        "shows random numbers: {d_model} numbers of “{here}” become {width}, its {role}.",
        **facts,
    )
    figure = panels(_grid(scene, role), scene.theme)
    spots = row_spots(figure, asking_words(scene), upright=scene.notation == "columns")
    return Shown(facts, figure, says, tuple(spot for spot in spots if spot.axis != _MATRIX), drawn=True)


def _formula(role: _Role, notation: str) -> str:
    if notation == "columns":
        return f"{role.letter} = W_{role.letter}\\, X"
    return f"{role.letter} = X\\, W_{role.letter}"


def _grid(scene: Scene, role: _Role) -> list[list[Panel]]:
    """Return the words' vectors, the role's matrix and their product."""
    trace = own_head(scene, d_v=role.width if role.letter == "V" else D_K)
    x, call = trace.layer(0).embeddings, trace.attention(0)
    assert x is not None  # our own module keeps them
    made = {"Q": call.query, "K": call.key, "V": call.value}[role.letter][0]
    matrix = Scratch(D_MODEL, 1, scene.seed, positions="none").projections()[role.name].weight[:, : role.width]
    words, place = list(offered(scene.words).values()), own_place(scene)
    inner, outer = ([str(at) for at in range(size)] for size in (D_MODEL, role.width))
    upright = scene.notation == "columns"

    def panel(title: str, rows: list[str], columns: list[str], number: object, line: int | None = None) -> Panel:
        assert isinstance(number, type(matrix))
        if upright:
            return Panel(title, columns, rows, number.mT.tolist(), line=line, digits=1, upright=True)
        return Panel(title, rows, columns, number.tolist(), line=line, digits=1)

    return [
        [panel("X", words, inner, x, place)],
        [panel(f"W_{role.letter}", inner, outer, matrix), panel(role.letter, words, outer, made, place)],
    ]


def _options_roles(_: Scene) -> dict[str, str]:
    return {
        option: translate("{role}: {width} numbers", role=translate(_NAMES[role.name]), width=role.width)
        for option, role in _ROLES.items()
    }


_CONTROL_ROLES = Control("Role", _options_roles, lambda scene: "query")

LESSONS = {
    "roles": Lesson(
        "Queries, keys and values",
        7,
        _ask_roles,
        _show_roles,
        _CONTROL_ROLES,
        "project",
        deeper=("steps",),
        words=trained_words,
        idea=(
            "A model learns three matrices. They turn each word’s vector into three: a query that searches, a key "
            "that is found, and a value that is passed on. Queries are compared with keys, by their dot product."
        ),
    ),
}
