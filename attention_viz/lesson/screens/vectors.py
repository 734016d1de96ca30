"""Words: why meaning depends on others, word vectors, and attention without parameters."""

import torch

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, short
from attention_viz.lesson.links import (
    asking_position,
    pressed_words,
    word_positions,
)
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed, texts
from attention_viz.scratch.model import Scratch
from attention_viz.views import steps

_WIDTHS = ("2", "4", "8", "12", "16")
# How many numbers of a vector the text names.
_MOST_NUMBERS = 3


def _closest(scene: Scene, x: torch.Tensor) -> str:
    """Return the closest words by dot product; repeats count once."""
    found = [
        (float(x[i] @ x[j]), i, j) for i in range(len(x)) for j in range(i + 1, len(x)) if not torch.equal(x[i], x[j])
    ]
    if not found:
        return "there is only one word, with nothing to compare it to"
    product, i, j = max(found)
    pair = f"“{in_words(scene.names[i])}” and “{in_words(scene.names[j])}” are most alike, with {signed(product, 2)}"
    return f"{pair}, not counting that {_twins(scene)} have one vector" if _twins(scene) else pair


def _twins(scene: Scene) -> str:
    """Return the first repeated word, in any spelling; may be empty."""
    first: dict[str, str] = {}
    for word, name in zip(scene.words, scene.names, strict=True):
        if (same := first.setdefault(word.casefold(), name)) is not name:
            return f"“{in_words(same)}” and “{in_words(name)}”"
    return ""


def _ask_vectors(scene: Scene) -> Ask:
    """Use a real model: seeded vectors are alike by chance."""
    trace = scene.trained()
    x, tokens = trace.layer(0).embeddings, trace.query_tokens()
    assert x is not None  # this model keeps them
    places = word_positions(trace)
    query = asking_position(scene)
    others = [at for at in places if at != query] or [query]
    alike = torch.nn.functional.cosine_similarity(x[query][None], x[others], dim=-1).tolist()
    labels = tuple(offered([tokens.names[at] for at in others]).values())
    best = max(range(len(alike)), key=alike.__getitem__)
    return Ask(
        f"Whose vector is most like that of {short(tokens.names[query])}?",
        f"{short(tokens.names[query])} is most like {short(labels[best])}",
        f"{scene.called}: similarity (cosine) of the vectors that enter its first layer, places included",
        labels,
        tuple(alike),
        pressed=pressed_words(trace, others),
        word=True,
        whole=1.0,
    )


def _show_vectors(scene: Scene) -> Shown:
    d_model, at = int(_CONTROL_VECTORS.value(scene)), scene.asking
    trace = Scratch(d_model, 1, scene.seed, positions="none").trace(scene.text)
    x = trace.layer(0).embeddings
    assert x is not None  # our own module keeps them
    numbers = [signed(number, 2) for number in x[at].tolist()[:_MOST_NUMBERS]]
    facts = {
        **texts(d_model=d_model, count=x.numel()),
        "word": in_words(scene.names[at]),
        "tokens": counted(len(x), "token"),
        "line": "column" if scene.notation == "columns" else "row",
        "numbers": ", ".join(numbers),
        "closest": _closest(scene, x),
    }
    says = f"Other, random vectors: {facts['tokens']} with {d_model} numbers each. Here {facts['closest']}."
    return Shown(facts, steps(trace, 0, 0, "embeddings", notation=scene.notation, theme=scene.theme), says, drawn=True)


_CONTROL_VECTORS = Control("Vector width", lambda scene: {width: width for width in _WIDTHS}, lambda scene: "8")


LESSONS = {
    "vectors": Lesson(
        "Words as vectors", 5, _ask_vectors, _show_vectors, _CONTROL_VECTORS, "nearest", deeper=("steps",)
    ),
}
