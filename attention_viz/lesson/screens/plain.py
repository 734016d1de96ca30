"""Attention without parameters, from the words' own vectors."""

from attention_viz.lesson.asking import Ask, row_asked
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import word_positions
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed, telling
from attention_viz.operation.attention import attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.variants import run_variant
from attention_viz.views import looks

__all__ = ["LESSON"]

# Narrow, so that a word has something left for others.
_D_MODEL = 4

_FORMULAS = {
    "rows": r"w_{ij} = \operatorname{softmax}_j(x_i \cdot x_j), \quad y_i = \sum_j w_{ij}\, x_j",
    "columns": r"w_{ij} = \operatorname{softmax}_j(x_i^{\top} x_j), \quad y_i = \sum_j w_{ij}\, x_j",
}


def _ask(scene: Scene) -> Ask:
    query = int(_CONTROL.value(scene))
    trace, _ = run_variant(Scratch(_D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    pressed = tuple(map(str, range(len(scene.words))))
    source = "dot products of vectors from a seed: these numbers mean nothing"
    return row_asked(trace.weights(0, 0)[query], scene.words, query, source, pressed, complete=True)


def _show(scene: Scene) -> Shown:
    query, words = int(_CONTROL.value(scene)), scene.words
    trace, _ = run_variant(Scratch(_D_MODEL, 1, scene.seed, positions="none"), scene.text, "plain")
    weights, x = trace.weights(0, 0), trace.attention(0).value[0]
    row = weights[query]
    best = max((key for key in range(len(row)) if key != query), key=lambda key: float(row[key]), default=query)
    # The same word elsewhere has the same vector and the same share, so it counts as itself.
    itself = sum(float(one[at]) >= float(one.max()) for at, one in enumerate(weights))
    facts = {
        "formula.plain": _FORMULAS.get(scene.notation, _FORMULAS["rows"]),
        "d_model": str(_D_MODEL),
        "words": counted(len(row), "word"),
        "rows": counted(len(row), "row"),
        "word": in_words(words[query]),
        "other": in_words(words[best]),
        "own": signed(float(row[query])),
        "weight": signed(float(row[best])),
        "product": signed(float(x[query] @ x[best]), 2),
        "square": signed(float(x[query] @ x[query]), 2),
        "total": signed(float(row.sum())),
        "itself": str(itself),
        "before": signed(float(x[query, 0]), 2),
        "after": signed(float(trace.attention(0).output[0, query, 0]), 2),
        "model": scene.called,
        **_trained(scene),
    }
    says = (
        f"With vectors from a seed, so by chance, “{facts['word']}” takes {facts['own']} from itself and "
        f"{facts['weight']} from “{facts['other']}”."
    )
    return Shown(facts, looks(trace, 0, 0, query, theme=scene.theme), says)


def _trained(scene: Scene) -> dict[str, str]:
    """Return learned vectors' width and mean weight on themselves."""
    trace = scene.trained()
    x, words = trace.layer(0).embeddings, list(word_positions(trace))
    assert x is not None  # these models keep them
    own = attend(x[None], x[None], x[None], scale=1.0).weights[0].diagonal()[words]
    return {"wide": str(x.shape[-1]), "learned": signed(float(own.mean()))}


_CONTROL = Control("Word that looks", lambda scene: offered(scene.words), lambda scene: telling(scene.words))

LESSON = Lesson(
    "Attention without parameters",
    6,
    _ask,
    _show,
    _CONTROL,
    "plain",
    deeper=("steps",),
    covers=("plain attention: a softmax of the vectors' own dot products, and nothing learned",),
)
