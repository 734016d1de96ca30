"""Queries, keys and values: three matrices give each vector three roles."""

from attention_viz.lesson.asking import Ask, CatalogueHead
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import HeadLink, asking_position, strongest_link, trained_words, word_positions
from attention_viz.lesson.own_head import D_K, D_MODEL, own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import asking_words, row_spots
from attention_viz.lesson.words import in_words, signed
from attention_viz.operation.attention import attend
from attention_viz.trace.trace import Trace
from attention_viz.views import roles

__all__ = ["LESSON"]

_WIDTHS = ("2", "3", "4", "6")


def _link(scene: Scene) -> HeadLink:
    trace = scene.trained()
    return strongest_link(trace, asking_position(trace, scene.word))


def _own_shares(scene: Scene) -> tuple[float, float]:
    """Return mean weights on oneself: raw vectors, trained head."""
    trace, link = scene.trained(), _link(scene)
    x, words = trace.layer(link.layer).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    plain = attend(x[None], x[None], x[None], scale=1.0).weights[0]
    weights = trace.weights(link.layer, link.head)
    return float(plain.diagonal()[words].mean()), float(weights.diagonal()[words].mean())


def _ask(scene: Scene) -> Ask:
    """Use a trained head: seeded matrices say nothing of words."""
    link, shares = _link(scene), _own_shares(scene)
    before, after = map(signed, shares)
    return Ask(
        "When does a word take more from itself?",
        f"From itself: {before} without matrices, {after} with them",
        f"{scene.called}, layer {link.layer}, head {link.head}; mean over the words",
        ("vectors as they are", "with W_Q and W_K"),
        shares,
        place=CatalogueHead.of(scene.trained(), link.layer, link.head),
    )


def _show(scene: Scene) -> Shown:
    d_v, link = int(_CONTROL.value(scene)), _link(scene)
    trained, trace = scene.trained(), own_head(scene, D_K, d_v)
    call, labels = trained.attention(link.layer), trained.query_tokens().written
    plain, own = _own_shares(scene)
    facts = {
        "model": scene.called,
        "layer": str(link.layer),
        "head": str(link.head),
        "word": in_words(labels[link.query]),
        "other": in_words(labels[int(call.scores[link.head, link.query].argmax())]),
        "wide": str(call.query.shape[-1]),
        "vector": str(_width(trained, link.layer)),
        "d_model": str(D_MODEL),
        "d_k": str(trace.attention(0).key.shape[-1]),
        "d_v": str(trace.attention(0).value.shape[-1]),
        "plain": signed(plain),
        "own": signed(own),
    }
    says = (
        f"Drawn small, with matrices from a seed, so the numbers mean nothing: each token has {facts['d_k']} numbers "
        f"as a query, {facts['d_k']} as a key and {facts['d_v']} as a value."
    )
    figure = roles(trace, 0, 0, notation=scene.notation, theme=scene.theme)
    upright = scene.notation == "columns"
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene), upright=upright))


def _width(trace: Trace, layer: int) -> int:
    x = trace.layer(layer).embeddings
    assert x is not None  # these models keep them
    return x.shape[-1]


_CONTROL = Control("Numbers in a value", lambda scene: {width: width for width in _WIDTHS}, lambda scene: "3")

LESSON = Lesson(
    "Queries, keys and values",
    7,
    _ask,
    _show,
    _CONTROL,
    "project",
    deeper=("steps",),
    covers=(
        "three learned projections side by side: why three and not one",
        "queries and keys are equally wide, values may differ",
        "retrieval: a query asks, keys advertise, values are fetched",
        "a single head: each vector plays three roles",
    ),
    words=trained_words,
)
