"""Words: why meaning depends on others, and attention without parameters."""

from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, row_asked, short
from attention_viz.lesson.links import (
    opening_word,
    positioned_words,
    pressed_positions,
    scene_link,
    word_positions,
)
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, quoted, signed, signs, telling, texts, weight_texts
from attention_viz.operation.attention import attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.variants import run_variant
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views import looks


def _trace(scene: Scene) -> Trace:
    return scene.trained()


def _ask_why(scene: Scene) -> Ask:
    trace, query = _trace(scene), int(_CONTROL_WHY.value(scene))
    link = scene_link(scene, query)
    labels = trace.query_tokens().names
    # Without a head from the other pages, each word has its own: a press on another word changes it.
    shared = scene.head == (link.layer, link.head)
    chosen = "the head that the other pages show" if shared else f"the head chosen for {short(labels[query])}"
    source = f"{scene.called}, layer {link.layer}, head {link.head}: {chosen}"
    row = trace.weights(link.layer, link.head)[query]
    place = CatalogueHead.of(trace, link.layer, link.head, (link.query, link.key))
    return row_asked(row, labels, query, source, pressed_positions(trace), complete=True, place=place)


def _show_why(scene: Scene) -> Shown:
    trace, query = _trace(scene), int(_CONTROL_WHY.value(scene))
    labels, link = trace.query_tokens().names, scene_link(scene, query)
    word, other = in_words(labels[query]), in_words(labels[link.key])
    facts = {
        **texts(layer=link.layer, head=link.head, layers=trace.layer_count(), model=scene.called, other=other),
        **texts(heads=sum(trace.head_count(layer) for layer in trace.layer_numbers()), word=word),
        "which": "that the other pages show, too"
        if scene.head == (link.layer, link.head)
        else f"that lets “{word}” look most at one of {link.among}, of those heads that follow no fixed place",
        "among": link.among,
        "weight": weight_text(link.weight),
        "percent": f"{link.weight:.0%}",
    }
    says = (
        f"In layer {link.layer}, head {link.head}, of {link.among} “{word}” looks most at “{other}”: {facts['weight']}."
    )
    return Shown(facts, looks(trace, link.layer, link.head, query, theme=scene.theme), says)


_CONTROL_WHY = Control("Query word", positioned_words, opening_word)


# Narrow, so that a word has something left for others.
_D_MODEL = 4

_FORMULAS = {
    "rows": r"w_{ij} = \operatorname{softmax}_j(x_i \cdot x_j), \quad y_i = \sum_j w_{ij}\, x_j",
    "columns": r"w_{ij} = \operatorname{softmax}_j(x_i^{\top} x_j), \quad y_i = \sum_j w_{ij}\, x_j",
}


def _ask_plain(scene: Scene) -> Ask:
    query = int(_CONTROL_PLAIN.value(scene))
    trace, _ = run_variant(Scratch(_D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    pressed = tuple(map(str, range(len(scene.words))))
    source = "dot products of random vectors: these numbers mean nothing"
    return row_asked(trace.weights(0, 0)[query], scene.names, query, source, pressed, complete=True, drawn=True)


def _show_plain(scene: Scene) -> Shown:
    query, words = int(_CONTROL_PLAIN.value(scene)), scene.names
    trace, _ = run_variant(Scratch(_D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    weights, x = trace.weights(0, 0), trace.attention(0).value[0]
    row = weights[query]
    best = max((key for key in range(len(row)) if key != query), key=lambda key: float(row[key]), default=query)
    # The same word elsewhere has the same vector and the same share, so it counts as itself.
    itself = sum(float(one[at]) >= float(one.max()) for at, one in enumerate(weights))
    facts = {
        **texts(d_model=_D_MODEL, itself=itself, model=scene.called),
        **quoted(words, word=query, other=best),
        **weight_texts(own=row[query], weight=row[best], total=row.sum()),
        **signs(2, product=x[query] @ x[best], square=x[query] @ x[query], before=x[query, 0]),
        **signs(2, after=trace.attention(0).output[0, query, 0]),
        "formula.plain": _FORMULAS.get(scene.notation, _FORMULAS["rows"]),
        "words": counted(len(row), "word"),
        "rows": counted(len(row), "row"),
        **_trained(scene),
    }
    says = (
        f"With random vectors, “{facts['word']}” takes {facts['own']} from itself and "
        f"{facts['weight']} from “{facts['other']}”."
    )
    return Shown(facts, looks(trace, 0, 0, query, theme=scene.theme), says, drawn=True)


def _trained(scene: Scene) -> dict[str, str]:
    """Return learned vectors' width and mean weight on themselves."""
    trace = scene.trained()
    x, words = trace.layer(0).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    own = attend(x[None], x[None], x[None], scale=1.0).weights[0].diagonal()[words]
    return {"wide": str(x.shape[-1]), "learned": signed(float(own.mean()))}


_CONTROL_PLAIN = Control("Query word", lambda scene: offered(scene.words), lambda scene: telling(scene.words))

LESSONS = {
    "why": Lesson("Why attention", 5, _ask_why, _show_why, _CONTROL_WHY, "strongest", deeper=("", "heads")),
    "plain": Lesson(
        "Attention without parameters", 6, _ask_plain, _show_plain, _CONTROL_PLAIN, "plain", deeper=("steps",)
    ),
}
