"""Older attention: four kinds of scores."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, bar_spots
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.words import in_words, offered, quoted
from attention_viz.operation.attention import Attention, attend
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Layer, Trace
from attention_viz.views import looks

_D_MODEL = 8
# How many times as long the question makes all vectors.
_LONGER = 10

# Label and formula of each score: s is the query's vector, h the key's.
KINDS = {
    "additive": ("additive (Bahdanau)", r"r^{\top} \tanh(W s_i + U h_j)"),
    "dot": ("dot product (Luong)", r"s_i^{\top} h_j"),
    "general": ("general (Luong)", r"s_i^{\top} W h_j"),
    "scaled": ("scaled dot product (Transformer)", r"\tfrac{1}{\sqrt{d}}\, s_i^{\top} h_j"),
}


_PREMISES = {
    "additive": "The additive score adds the two vectors, each times a matrix, squeezes each number of the sum between "
    "−1 and 1 (tanh), and takes its dot product with a learned vector.",
    "dot": "This score is the dot product of the two vectors.",
    "general": "This score is a product, too: one vector, times a learned matrix, times the other vector.",
    "scaled": "This score is the dot product of the two vectors, divided by the root of their width.",
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
    whole, (x, w, u, v) = scratch.trace(scene.text), _drawn_vectors(scene)
    call = scored(x, w, u, v, kind)
    origin = replace(whole.provenance, revision=f"{whole.provenance.revision} score={kind}")
    return replace(whole, layers={scratch.stream: (Layer(call, "0", x),)}, output=call.output[0], provenance=origin)


def _drawn_vectors(scene: Scene) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the words' vectors, W, U and v, all from a seed."""
    scratch = Scratch(_D_MODEL, 1, scene.seed, positions="none")
    known = scratch.projections()
    v = word_vectors(("v",), _D_MODEL, scene.seed)[0]
    return scratch.embed(scene.words), known["query"].weight, known["key"].weight, v


def _ask_older(scene: Scene) -> Ask:
    kind, query = _CONTROL_OLDER.value(scene), scene.asking
    x, w, u, v = _drawn_vectors(scene)
    short, long = (float(scored(x * times, w, u, v, kind).masked[0, query].abs().max()) for times in (1, _LONGER))
    grown = long / short
    options = {math.sqrt(_LONGER): translate("less than {times} times", times=_LONGER)}
    options |= {float(times): translate("{times} times", times=grouped(times)) for times in (_LONGER, _LONGER**2)}
    right = min(options, key=lambda times: abs(math.log(grown / times)))
    name = translate(KINDS[kind][0])
    return Ask(
        translate("Both vectors are {times} times as long. And the score?", times=_LONGER),
        translate("“{score}”: {grown} times as large", score=name, grown=grouped(grown, ",.3g")),
        translate(
            "random vectors and matrices: the largest score of “{word}”, without its sign",
            word=in_words(scene.names[query]),
        ),
        tuple(options.values()),
        tuple(float(times == right) for times in options),
        shown=tuple(f"{short:.2f} → {grouped(long, ',.2f')}" if times == right else "" for times in options),
        premise=translate(_PREMISES[kind]),
        reasons=_reasons(kind, [*options].index(right)),
    )


def _reasons(kind: str, right: int) -> tuple[str, ...]:
    """Say why the others are wrong, if the answer is the one that a score's formula makes plain."""
    if kind == "additive" and right == 0:
        return (
            "",
            translate("The sum grows like this, but tanh keeps each of its numbers between −1 and 1."),
            translate("Here nothing multiplies the two vectors with each other: they are added."),
        )
    if kind != "additive" and right == len(_PREMISES) - 2:
        return (
            translate("Nothing squeezes this score: it grows with both vectors."),
            translate("One longer vector does this; here both are longer, and the score multiplies them."),
            "",
        )
    return ()


def _show_older(scene: Scene) -> Shown:
    kind, query = _CONTROL_OLDER.value(scene), scene.asking
    trace = _trace_older(scene, kind)
    row = trace.weights(0, 0)[query]
    key = int(row.argmax())
    facts = {
        "d": str(_D_MODEL),
        **quoted(scene.names, word=query, other=key),
        "formula.score": r"e_{ij} = " + KINDS[kind][1],
        "kind": translate(KINDS[kind][0]),
        "one": f"{math.tanh(math.inf):.0f}",
        "weight": weight_text(float(row[key])),
        "beside": _beside(scene, kind, query, key),
    }
    says = translate(
        "With random numbers and the score “{kind}”, “{word}” looks most at “{other}”: {weight}.",
        **{name: facts[name] for name in ("kind", "word", "other", "weight")},
    )
    spots = bar_spots([*map(str, range(len(scene.words)))])
    return Shown(facts, looks(trace, 0, 0, query, theme=scene.theme), says, spots, drawn=True)


def _beside(scene: Scene, kind: str, query: int, key: int) -> str:
    other = "scaled" if kind == "dot" else "dot"
    weight = weight_text(float(_trace_older(scene, other).weights(0, 0)[query, key]))
    if kind == "dot":
        return translate("With the scaled dot product, that weight is {weight}.", weight=weight)
    return translate("With the plain dot product, that weight is {weight}.", weight=weight)


def _kinds(_: Scene) -> dict[str, str]:
    return {name: translate(label) for name, (label, _formula) in KINDS.items()}


_CONTROL_OLDER = Control("Score", _kinds, lambda scene: "additive")

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
        idea=(
            "Translators before the transformer had attention, too. Its first score adds two vectors; later ones "
            "multiply."
        ),
    ),
}
