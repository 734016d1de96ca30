"""Queries, keys and values: three matrices give each vector three parts to play."""

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.own_head import D_K, D_MODEL, own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, signed
from attention_viz.operation.attention import Attention, attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.variants import run_variant
from attention_viz.views import roles

__all__ = ["LESSON"]

_WIDTHS = ("2", "3", "4", "6")


def _own_share(call: Attention) -> str:
    """What a token takes from itself, on average, with scores as they are: the scale has a lesson of its own."""
    return signed(_share(call))


def _share(call: Attention) -> float:
    return float(attend(call.query, call.key, call.value, scale=1.0).weights[0].diagonal().mean())


def _ask(scene: Scene) -> Ask:
    plain, _ = run_variant(Scratch(D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    shares = [_share(plain.attention(0)), _share(own_head(scene, D_K, int(_CONTROL.value(scene))).attention(0))]
    before, after = map(signed, shares)
    return Ask(
        "When does a word take more from itself?",
        f"From itself: {before} without matrices, {after} with them",
        "our own small head, weights from a seed; mean over the words",
        ("vectors as they are", "with W_Q and W_K"),
        tuple(shares),
    )


def _show(scene: Scene) -> Shown:
    d_v, at = int(_CONTROL.value(scene)), scene.asking
    trace = own_head(scene, D_K, d_v)
    plain, _ = run_variant(Scratch(D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    scores = trace.attention(0).scores[0, at]
    facts = {
        "word": in_words(scene.words[at]),
        "other": in_words(scene.words[int(scores.argmax())]),
        "d_model": str(D_MODEL),
        "d_k": str(trace.attention(0).key.shape[-1]),
        "d_v": str(trace.attention(0).value.shape[-1]),
        "plain": _own_share(plain.attention(0)),
        "own": _own_share(trace.attention(0)),
    }
    says = (
        f"Each token has {facts['d_k']} numbers as a query, {facts['d_k']} as a key and "
        f"{facts['d_v']} as a value; the query of “{facts['word']}” suits the key of “{facts['other']}” best."
    )
    return Shown(facts, roles(trace, 0, 0, notation=scene.notation, theme=scene.theme), says)


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
)
