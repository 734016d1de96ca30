"""Vectors: a list of numbers for each token, and their likeness."""

import torch

from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import asking_position, pressed_words, word_positions
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from attention_viz.views import steps

__all__ = ["LESSON"]

_WIDTHS = ("2", "4", "8", "12", "16")
# How many numbers of a vector the text names.
_MOST_NUMBERS = 3


def _trace(scene: Scene, d_model: int) -> Trace:
    return Scratch(d_model, 1, scene.seed, positions="none").trace(scene.text)


def _closest(scene: Scene, x: torch.Tensor) -> str:
    """Return the closest words by dot product; repeats count once."""
    found = [
        (float(x[i] @ x[j]), i, j) for i in range(len(x)) for j in range(i + 1, len(x)) if not torch.equal(x[i], x[j])
    ]
    if not found:
        return "there is only one word, and nothing to compare it with"
    product, i, j = max(found)
    pair = f"“{in_words(scene.words[i])}” and “{in_words(scene.words[j])}” are most alike, with {signed(product, 2)}"
    return f"{pair}, not counting that {_twins(scene)} have one vector" if _twins(scene) else pair


def _twins(scene: Scene) -> str:
    """Return the first repeated word, in any spelling; may be empty."""
    first: dict[str, str] = {}
    for word in scene.words:
        if (same := first.setdefault(word.casefold(), word)) is not word:
            return f"“{in_words(same)}” and “{in_words(word)}”"
    return ""


def _ask(scene: Scene) -> Ask:
    """Use a real model: seeded vectors are alike by chance."""
    trace = scene.trained()
    x, tokens = trace.layer(0).embeddings, trace.query_tokens()
    assert x is not None  # this model keeps them
    places = word_positions(trace)
    query = asking_position(trace, scene.word)
    others = [at for at in places if at != query] or [query]
    alike = torch.nn.functional.cosine_similarity(x[query][None], x[others], dim=-1).tolist()
    labels = tuple(offered([tokens.written[at] for at in others]).values())
    best = max(range(len(alike)), key=alike.__getitem__)
    return Ask(
        f"Whose vector is most like that of {short(tokens.written[query])}?",
        f"{short(tokens.written[query])} is most like {short(labels[best])}",
        f"{scene.called}: cosine of the vectors that enter its first layer, with each word's place added",
        labels,
        tuple(alike),
        pressed=pressed_words(trace, others),
        word=True,
        whole=1.0,
    )


def _show(scene: Scene) -> Shown:
    d_model, at = int(_CONTROL.value(scene)), scene.asking
    trace = _trace(scene, d_model)
    x = trace.layer(0).embeddings
    assert x is not None  # our own module keeps them
    numbers = [signed(number, 2) for number in x[at].tolist()[:_MOST_NUMBERS]]
    facts = {
        "tokens": counted(len(x), "token"),
        "d_model": str(d_model),
        "count": str(x.numel()),
        "line": "column" if scene.notation == "columns" else "row",
        "word": in_words(scene.words[at]),
        "numbers": ", ".join(numbers),
        "closest": _closest(scene, x),
    }
    says = f"Other vectors, drawn by chance: {facts['tokens']} with {d_model} numbers each. Here {facts['closest']}."
    return Shown(facts, steps(trace, 0, 0, "embeddings", notation=scene.notation, theme=scene.theme), says)


_CONTROL = Control("Numbers in a vector", lambda scene: {width: width for width in _WIDTHS}, lambda scene: "8")

LESSON = Lesson(
    "Words as vectors",
    5,
    _ask,
    _show,
    _CONTROL,
    "nearest",
    deeper=("steps",),
    covers=("tokens and embeddings: the matrix X as colours and numbers", "seed and d_model to change"),
)
