"""Older attention: four kinds of scores."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, bar_spots, short
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import offered, quoted
from attention_viz.operation.attention import Attention, attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Layer, Trace
from attention_viz.views import looks

_D_MODEL = 8

# Label and formula of each score: s is the query's vector, h the key's.
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
        # No product of two vectors: the scores are passed as a bias.
        added = torch.tanh((x @ w.mT)[:, None] + (x @ u.mT)[None])
        return attend(torch.zeros_like(x)[None], x[None], x[None], bias=(added @ v)[None])
    designs: dict[str, Callable[[], Attention]] = {
        "dot": lambda: attend(x[None], x[None], x[None], scale=1.0),
        "general": lambda: attend((x @ w)[None], x[None], x[None], scale=1.0),
        "scaled": lambda: attend(x[None], x[None], x[None], scale=1 / math.sqrt(x.shape[-1])),
    }
    return designs[kind]()


def _trace_older(scene: Scene, kind: str) -> Trace:
    scratch = Scratch(_D_MODEL, 1, scene.seed, positions="none")
    whole, known = scratch.trace(scene.text), scratch.projections()
    x, v = scratch.embed(scene.words), word_vectors(("v",), _D_MODEL, scene.seed)[0]
    call = scored(x, known["query"].weight, known["key"].weight, v, kind)
    origin = replace(whole.provenance, revision=f"{whole.provenance.revision} score={kind}")
    return replace(whole, layers={scratch.stream: (Layer(call, "0", x),)}, output=call.output[0], provenance=origin)


def _ask_older(scene: Scene) -> Ask:
    query = scene.asking
    largest = [float(_trace_older(scene, kind).weights(0, 0)[query].max()) for kind in KINDS]
    best, names = max(range(len(largest)), key=largest.__getitem__), [name for name, _ in KINDS.values()]
    return Ask(
        f"Which score concentrates the weights of {short(scene.names[query])} most?",
        f"Most concentrated: {names[best]}, with a largest weight of {weight_text(largest[best])}",
        "random vectors and matrices: only the comparison of the four scores means something",
        tuple(names),
        tuple(largest),
        pressed=tuple(KINDS),
        drawn=True,
    )


def _show_older(scene: Scene) -> Shown:
    kind, query = _CONTROL_OLDER.value(scene), scene.asking
    trace = _trace_older(scene, kind)
    row = trace.weights(0, 0)[query]
    key = int(row.argmax())
    facts = {
        "d": str(_D_MODEL),
        **quoted(scene.names, word=query, other=key),
        "formula.score": r"e_{ij} = " + KINDS[kind][1],
        "kind": KINDS[kind][0],
        "one": f"{math.tanh(math.inf):.0f}",
        "weight": weight_text(float(row[key])),
        "beside": _beside(scene, kind, query, key),
    }
    taken = f"“{facts['word']}” looks most at “{facts['other']}”: {facts['weight']}."
    says = f"With random numbers and the score “{facts['kind']}”, {taken}"
    spots = bar_spots([*map(str, range(len(scene.words)))])
    return Shown(facts, looks(trace, 0, 0, query, theme=scene.theme), says, spots, drawn=True)


def _beside(scene: Scene, kind: str, query: int, key: int) -> str:
    other, how = ("scaled", "scaled") if kind == "dot" else ("dot", "plain")
    weight = float(_trace_older(scene, other).weights(0, 0)[query, key])
    return f"With the {how} dot product, that weight is {weight_text(weight)}."


_CONTROL_OLDER = Control("Score", lambda scene: {name: KINDS[name][0] for name in KINDS}, lambda scene: "additive")

LESSONS = {
    "older": Lesson(
        "Older attention",
        7,
        _ask_older,
        _show_older,
        _CONTROL_OLDER,
        "additive",
        deeper=("steps",),
        words=lambda scene: (offered(scene.words), str(scene.asking)),
    ),
}
