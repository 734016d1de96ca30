"""Queries, keys and values."""

from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, asking_words, row_spots
from attention_viz.lesson.links import (
    HeadLink,
    asking_position,
    scene_link,
    trained_words,
    word_positions,
)
from attention_viz.lesson.own_head import D_K, D_MODEL, own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import quoted, signed, signs, texts
from attention_viz.operation.attention import attend
from attention_viz.trace.trace import Trace
from attention_viz.views import roles

_WIDTHS = ("2", "3", "4", "6")


def _link(scene: Scene) -> HeadLink:
    return scene_link(scene, asking_position(scene))


def _own_shares(scene: Scene) -> tuple[float, float]:
    """Return mean weights on oneself: raw vectors, trained head."""
    trace, link = scene.trained(), _link(scene)
    x, words = trace.layer(link.layer).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    plain = attend(x[None], x[None], x[None], scale=1.0).weights[0]
    weights = trace.weights(link.layer, link.head)
    return float(plain.diagonal()[words].mean()), float(weights.diagonal()[words].mean())


def _ask_roles(scene: Scene) -> Ask:
    """Use a trained head: seeded matrices say nothing of words."""
    link, shares = _link(scene), _own_shares(scene)
    before, after = map(signed, shares)
    return Ask(
        "When does a word take more from itself?",
        f"A word takes {before} from itself without matrices, {after} with them",
        f"{scene.called}, layer {link.layer}, head {link.head}; mean over the words",
        ("vectors as they are", "with learned matrices"),
        shares,
        place=CatalogueHead.of(scene.trained(), link.layer, link.head),
    )


def _show_roles(scene: Scene) -> Shown:
    d_v, link = int(_CONTROL_ROLES.value(scene)), _link(scene)
    trained, trace = scene.trained(), own_head(scene, D_K, d_v)
    call, labels = trained.attention(link.layer), trained.query_tokens().names
    plain, own = _own_shares(scene)
    facts = {
        **texts(layer=link.layer, head=link.head, wide=call.query.shape[-1], vector=_width(trained, link.layer)),
        **texts(d_model=D_MODEL, d_k=trace.attention(0).key.shape[-1], d_v=trace.attention(0).value.shape[-1]),
        **quoted(labels, word=link.query, other=int(call.scores[link.head, link.query].argmax())),
        **signs(plain=plain, own=own),
        "model": scene.called,
    }
    says = (
        f"A small example with random matrices, so the numbers mean nothing: each token has {facts['d_k']} numbers "
        f"as a query, {facts['d_k']} as a key and {facts['d_v']} as a value."
    )
    figure = roles(trace, 0, 0, notation=scene.notation, theme=scene.theme)
    upright = scene.notation == "columns"
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene), upright=upright), drawn=True)


def _width(trace: Trace, layer: int) -> int:
    x = trace.layer(layer).embeddings
    assert x is not None  # these models keep them
    return x.shape[-1]


_CONTROL_ROLES = Control("Value width", lambda scene: {width: width for width in _WIDTHS}, lambda scene: "3")


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
    ),
}
