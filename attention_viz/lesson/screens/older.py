"""Older attention: four kinds of scores on one sentence."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import bar_spots
from attention_viz.lesson.words import in_words, offered
from attention_viz.operation.attention import Attention, attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.trace import Layer, Trace
from attention_viz.views import looks

__all__ = ["KINDS", "LESSON", "scored"]

_D_MODEL = 8

# What a person reads, and the formula of one score: s is the vector that asks, h the one that is asked.
KINDS = {
    "additive": ("additive (Bahdanau)", r"v^{\top} \tanh(W s_i + U h_j)"),
    "dot": ("dot product (Luong)", r"s_i^{\top} h_j"),
    "general": ("general (Luong)", r"s_i^{\top} W h_j"),
    "scaled": ("scaled dot product (Transformer)", r"\tfrac{1}{\sqrt{d}}\, s_i^{\top} h_j"),
}


def scored(x: Tensor, w: Tensor, u: Tensor, v: Tensor, kind: str) -> Attention:
    """Attend with one kind of score, head first.

    Source: Bahdanau et al. 2015, appendix A.1.2 (additive); Luong et al. 2015, section 3.1 (dot, general); Vaswani et
    al. 2017, eq. 1 (scaled).
    """
    if kind == "additive":
        # No product of two vectors: the scores are written where a bias would stand.
        added = torch.tanh((x @ w.mT)[:, None] + (x @ u.mT)[None])
        return attend(torch.zeros_like(x)[None], x[None], x[None], bias=(added @ v)[None])
    designs: dict[str, Callable[[], Attention]] = {
        "dot": lambda: attend(x[None], x[None], x[None], scale=1.0),
        "general": lambda: attend((x @ w)[None], x[None], x[None], scale=1.0),
        "scaled": lambda: attend(x[None], x[None], x[None], scale=1 / math.sqrt(x.shape[-1])),
    }
    return designs[kind]()


def _trace(scene: Scene, kind: str) -> Trace:
    scratch = Scratch(_D_MODEL, 1, scene.seed, positions="none")
    whole, known = scratch.trace(scene.text), scratch.projections()
    x, v = scratch.embed(scene.words), word_vectors(("v",), _D_MODEL, scene.seed)[0]
    call = scored(x, known["query"].weight, known["key"].weight, v, kind)
    origin = replace(whole.provenance, revision=f"{whole.provenance.revision} score={kind}")
    return replace(whole, layers={scratch.stream: (Layer(call, "0", x),)}, output=call.output[0], provenance=origin)


def _ask(scene: Scene) -> Ask:
    query = scene.asking
    largest = [float(_trace(scene, kind).weights(0, 0)[query].max()) for kind in KINDS]
    best, names = max(range(len(largest)), key=largest.__getitem__), [name for name, _ in KINDS.values()]
    return Ask(
        f"Which score gives the favourite of {short(scene.words[query])} most?",
        f"The {names[best]} gives its favourite {largest[best]:.2f}",
        "vectors and matrices from a seed: these numbers mean nothing, the four ways do",
        tuple(names),
        tuple(largest),
        pressed=tuple(KINDS),
    )


def _show(scene: Scene) -> Shown:
    kind, query = _CONTROL.value(scene), scene.asking
    trace = _trace(scene, kind)
    row = trace.weights(0, 0)[query]
    key = int(row.argmax())
    facts = {
        "formula.score": r"e_{ij} = " + KINDS[kind][1],
        "kind": KINDS[kind][0],
        "d": str(_D_MODEL),
        "one": f"{math.tanh(math.inf):.0f}",
        "word": in_words(scene.words[query]),
        "other": in_words(scene.words[key]),
        "weight": f"{float(row[key]):.3f}",
        "beside": _beside(scene, kind, query, key),
    }
    says = f"Scored by {facts['kind']}, “{facts['word']}” by chance prefers “{facts['other']}”, {facts['weight']}."
    spots = bar_spots([*map(str, range(len(scene.words)))])
    return Shown(facts, looks(trace, 0, 0, query, theme=scene.theme), says, spots)


def _beside(scene: Scene, kind: str, query: int, key: int) -> str:
    other, how = ("scaled", "once that is scaled") if kind == "dot" else ("dot", "by the plain dot product")
    return f"Of the same it takes {float(_trace(scene, other).weights(0, 0)[query, key]):.3f} {how}."


_CONTROL = Control("Score", lambda scene: {name: KINDS[name][0] for name in KINDS}, lambda scene: "additive")

LESSON = Lesson(
    "Older attention",
    7,
    _ask,
    _show,
    _CONTROL,
    "additive",
    deeper=("steps",),
    covers=("older attention (Bahdanau, Luong): additive, dot, general, scaled dot on the same tokens",),
    words=lambda scene: (offered(scene.words), str(scene.asking)),
)
