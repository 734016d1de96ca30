"""Outputs: weighted sums stay among the values; many heads have narrower queries."""

from collections.abc import Sequence

from attention_viz.analysis.plane import beyond, corners
from attention_viz.edits.words import listed
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, asking_words, row_spots, short
from attention_viz.lesson.links import (
    HeadLink,
    asking_position,
    opening_word,
    positioned_words,
    pressed_positions,
    scene_link,
    trained_words,
)
from attention_viz.lesson.own_head import in_a_plane
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, quoted, signed, texts, weight_texts
from attention_viz.scratch.model import Scratch
from attention_viz.trace.spelling import weight_text
from attention_viz.views import hull, side_by_side

_NAMED = 3
# Nearer to an edge than this, single precision can't say which side a point is on.
_EDGE = 1e-5


def _point(numbers: list[float]) -> str:
    return f"({', '.join(signed(number, 2) for number in numbers)})"


def _where(outside: float) -> str:
    if outside < -_EDGE:
        return "inside"
    return "on the edge of" if outside <= _EDGE else "outside"


def _link(scene: Scene) -> HeadLink:
    return scene_link(scene, int(_CONTROL_MIXTURE.value(scene)))


def _ask_mixture(scene: Scene) -> Ask:
    """Ask for the largest part along the output; parts sum to 1."""
    trace, link = scene.trained(), _link(scene)
    call, labels = trace.attention(link.layer).head(link.head), trace.query_tokens().names
    output = call.output[link.query].double()
    parts = (call.weights[link.query].double() * (call.value.double() @ output) / output.square().sum()).tolist()
    best = max(range(len(parts)), key=parts.__getitem__)
    word = short(labels[link.query])
    return Ask(
        f"Which word's value makes up most of the output of {word}?",
        f"{short(labels[best])} makes up {signed(parts[best], 2)} of the output of {word}",
        f"{scene.called}, layer {link.layer}, head {link.head}: weight × value along the output; the parts sum to 1",
        labels,
        tuple(parts),
        shown=tuple(signed(one, 2) for one in parts),
        pressed=pressed_positions(trace),
        query=link.query,
        place=CatalogueHead.of(trace, link.layer, link.head, (link.query, best)),
    )


def _show_mixture(scene: Scene) -> Shown:
    trace, link = scene.trained(), _link(scene)
    labels, query = trace.query_tokens().names, link.query
    flat, share = in_a_plane(trace, link.layer, link.head)
    call, row = flat.attention(0).head(0), trace.weights(link.layer, link.head)[query]
    values, output = (tensor.double().cpu().numpy() for tensor in (call.value, call.output[query]))
    ranked = row.argsort(descending=True, stable=True).tolist()
    terms = [f"{weight_text(float(row[key]))} · {_point(values[key].tolist())}" for key in ranked[:_NAMED]]
    facts = {
        **texts(layer=link.layer, head=link.head, d_v=trace.attention(link.layer).value.shape[-1], model=scene.called),
        **quoted(labels, word=query, best=ranked[0]),
        **weight_texts(weight=row[ranked[0]], total=row.sum()),
        "sum": " + ".join(terms) + (" + …" if len(ranked) > _NAMED else ""),
        "output": _point(output.tolist()),
        "share": f"{share:.0%}",
        "corners": counted(len(corners(values)), "corner"),
        "where": _where(beyond(values, output)),
    }
    says = (
        f"The output of “{facts['word']}”, {facts['output']}, is {facts['where']} the hull of the values; "
        f"“{facts['best']}” pulls most, with {facts['weight']}."
    )
    return Shown(facts, hull(flat, 0, 0, query, theme=scene.theme), says)


_CONTROL_MIXTURE = Control("Query word", positioned_words, opening_word)


_D_MODEL = 8
_OPTIONS = {str(heads): counted(heads, "head") for heads in (1, 2, 4, 8)}


def _ask_heads(scene: Scene) -> Ask:
    """Use a real model, whose heads were trained to differ."""
    trace = scene.trained()
    link = scene_link(scene, asking_position(scene))
    labels = trace.query_tokens().names
    weights = trace.attention(link.layer).weights[:, link.query, link.key].tolist()
    most = max(range(len(weights)), key=weights.__getitem__)
    pair = f"{short(labels[link.query])} → {short(labels[link.key])}"
    return Ask(
        f"In layer {link.layer}, which head links {pair} most?",
        f"Head {most} links {pair}: {weight_text(weights[most])}",
        f"{scene.called}, layer {link.layer}: one weight of each head",
        tuple(f"head {head}" for head in range(len(weights))),
        tuple(weights),
        shown=tuple(map(weight_text, weights)),
        place=CatalogueHead.of(trace, link.layer, most, (link.query, link.key)),
    )


def _show_heads(scene: Scene) -> Shown:
    heads = int(_CONTROL_HEADS.value(scene))
    scratch = Scratch(_D_MODEL, heads, scene.seed)
    trace = scratch.trace(scene.text)
    query = _own_place(scene)
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
    says = f"{facts['heads']} of ours, with random numbers: “{facts['word']}” looks most at {facts['favourites']}."
    figure = side_by_side(trace, 0, theme=scene.theme)
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene)), drawn=True)


def _own_place(scene: Scene) -> int:
    words, asking = trained_words(scene)
    same = [at for at, word in enumerate(scene.words) if word.casefold() == words[asking].casefold()]
    return int(asking) if len(words) == len(scene.words) else (same or [scene.asking])[0]


def _favourites_text(words: Sequence[str], favourites: Sequence[int]) -> str:
    heads_by_key: dict[int, list[int]] = {}
    for head, key in enumerate(favourites):
        heads_by_key.setdefault(key, []).append(head)
    if len(favourites) == 1:
        return f"“{in_words(words[favourites[0]])}”"
    return listed(
        [
            f"“{in_words(words[key])}” (head{'s' if len(heads) > 1 else ''} {listed([*map(str, heads)])})"
            for key, heads in heads_by_key.items()
        ]
    )


_CONTROL_HEADS = Control("Heads", lambda scene: _OPTIONS, lambda scene: "2")

LESSONS = {
    "mixture": Lesson(
        "The weighted sum", 6, _ask_mixture, _show_mixture, _CONTROL_MIXTURE, "output", deeper=("steps",)
    ),
    "heads": Lesson(
        "Many heads", 6, _ask_heads, _show_heads, _CONTROL_HEADS, "head", deeper=("", "heads"), words=trained_words
    ),
}
