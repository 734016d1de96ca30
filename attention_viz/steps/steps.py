"""The steps of attention in order, and their formulas.

A new step is an entry in `STEPS` and a function for its matrix.

Source: Vaswani et al. 2017, eq. 1 and section 3.2.2.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from attention_viz.steps import changes as step_changes
from attention_viz.steps.head import OpenHead
from attention_viz.trace.export import head_tensors
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.slots import has_target

__all__ = [
    "NOTATIONS",
    "STEPS",
    "Step",
    "explanation_of",
    "formula_of",
    "shape_of_step",
    "step_tensors",
    "steps_of",
    "transposed",
]

# How formulas are written: by name, what a person reads. "keys down" has the scores as K Qᵀ.
NOTATIONS = {"rows": "tokens as rows: Q Kᵀ", "columns": "tokens as columns: Qᵀ K", "keys down": "keys down: K Qᵀ"}

# Each axis of a matrix: what it counts in words, and its symbol.
AXES = {
    "token": ("tokens", "n"),
    "query": ("queries", "n"),
    "key": ("keys", "n"),
    "d_model": ("dimensions", r"d_{\text{model}}"),
    "d_k": ("dimensions", "d_k"),
    "d_v": ("dimensions", "d_v"),
    "decays": ("dimensions", "d"),
    "one": ("numbers", "1"),
}


@dataclass(frozen=True)
class Step:
    """One step of attention.

    Attributes:
        label: its name on pages.
        explanation: one or two sentences for readers who know matrices.
        rows: the LaTeX formula with tokens as rows.
        columns: the LaTeX formula with tokens as columns.
        keys_down: the LaTeX formula with scores as K Qᵀ, if it differs from `rows`.
        axes: the axes down and across with tokens as rows, names in `AXES`.
        function: returns the matrix; None if this trace lacks it.
        change: states the change since the step before.
        applies: returns whether the model has this step.
    """

    label: str
    explanation: str
    rows: str
    columns: str
    axes: tuple[str, str]
    function: Callable[[Any], Tensor | None]
    change: Callable[[Any], str]
    keys_down: str = ""
    applies: Callable[[Any], bool] = lambda opened: True

    def formula(self, notation: str) -> str:
        """Return the formula in one of `NOTATIONS`."""
        written = {"rows": self.rows, "columns": self.columns, "keys down": self.keys_down or self.rows}
        return written[notation]


STEPS: dict[str, Step] = {
    "embeddings": Step(
        "Embeddings",
        "The layer's input: one vector of numbers per token.",
        r"X = [\,x_1 \; \cdots \; x_n\,]^{\top}",
        r"X = [\,x_1 \; \cdots \; x_n\,]",
        ("token", "d_model"),
        lambda opened: opened.entry.embeddings,
        step_changes.embedded,
    ),
    "query": Step(
        "Query",
        "Each token's question: its vector times a learned matrix.",
        r"Q = X W_{Q}",
        r"Q = W_{Q} X, \quad q_i = W_{Q}\, x_i",
        ("query", "d_k"),
        lambda opened: opened.unrotated("query"),
        partial(step_changes.projected, name="query"),
    ),
    "key": Step(
        "Key",
        "How each token can be found: the same vector times a second matrix.",
        r"K = X W_{K}",
        r"K = W_{K} X, \quad k_j = W_{K}\, x_j",
        ("key", "d_k"),
        lambda opened: opened.unrotated("key"),
        partial(step_changes.projected, name="key"),
    ),
    "value": Step(
        "Value",
        "The content that each token gives to the tokens that attend to it: the same vector times a third matrix.",
        r"V = X W_{V}",
        r"V = W_{V} X, \quad v_j = W_{V}\, x_j",
        ("key", "d_v"),
        lambda opened: opened.attention.value,
        partial(step_changes.projected, name="value"),
    ),
    "rotated": Step(
        "Rotated",
        "Queries and keys rotate by their position: pairs of numbers turn by an angle that grows with it. So a score "
        "depends on the distance between two tokens. Rᵢ is the rotation at position i.",
        r"q'_i = R_i\, q_i, \quad k'_j = R_j\, k_j",
        r"q'_i = R_i\, q_i, \quad k'_j = R_j\, k_j",
        ("query", "d_k"),
        lambda opened: opened.attention.query,
        step_changes.rotated,
        applies=lambda opened: opened.rotates,
    ),
    "scores": Step(
        "Scores",
        "How well each query matches each key: their dot product.",
        r"S = Q K^{\top}, \quad S_{ij} = q_i \cdot k_j",
        r"E = Q^{\top} K, \quad E_{ij} = q_i^{\top} k_j",
        ("query", "key"),
        lambda opened: opened.attention.scores,
        step_changes.scored,
        keys_down=r"S = K Q^{\top}, \quad S_{ji} = k_j \cdot q_i",
    ),
    "scaled": Step(
        "Scaled",
        "The scores times one factor, so that long vectors don't push all the weight to one key.",
        r"S' = \lambda\, S",
        r"E' = \lambda\, E",
        ("query", "key"),
        lambda opened: opened.attention.scaled,
        step_changes.scaled,
    ),
    "softcapped": Step(
        "Soft-capped",
        "This model bounds large scores smoothly.",
        r"S'' = c \cdot \tanh\!\left(S' / c\right)",
        r"E'' = c \cdot \tanh\!\left(E' / c\right)",
        ("query", "key"),
        lambda opened: opened.capped,
        step_changes.capped,
        applies=lambda opened: opened.attention.softcap is not None,
    ),
    "biased": Step(
        "Biased",
        "This model adds a number that depends on the two positions.",
        r"S'' = S' + B",
        r"E'' = E' + B",
        ("query", "key"),
        lambda opened: opened.biased,
        step_changes.biased,
        keys_down=r"S'' = S' + B^{\top}",
        applies=lambda opened: opened.attention.bias is not None,
    ),
    "picked": Step(
        "Picked",
        "An indexer scores the keys, and picks the highest for each query. Here is how far each key is above the cut, "
        "the lowest score picked: keys below 0 are left out.",
        r"\text{margin}_{ij} = I_{ij} - \min_{m \text{ picked}} I_{im}",
        r"\text{margin}_{ij} = I_{ij} - \min_{m \text{ picked}} I_{im}",
        ("query", "key"),
        lambda opened: None if opened.picking is None else opened.picking.margins,
        step_changes.picked,
        keys_down=r"\text{margin}_{ji} = I_{ji} - \min_{m \text{ picked}} I_{mi}",
        applies=lambda opened: opened.picking is not None,
    ),
    "allowed": Step(
        "Allowed",
        "The mask blocks keys for each query: a blocked cell becomes −∞, so the softmax gives it exactly 0.",
        r"S'_{ij} \to -\infty \;\text{ if query } i \text{ may not attend to key } j",
        r"E'_{ij} \to -\infty \;\text{ if query } i \text{ may not attend to key } j",
        ("query", "key"),
        lambda opened: opened.attention.masked,
        step_changes.allowed,
        keys_down=r"S'_{ji} \to -\infty \;\text{ if query } i \text{ may not attend to key } j",
    ),
    "weights": Step(
        "Weights",
        "The softmax turns each query's scores into weights that sum to 1.",
        r"A = \operatorname{softmax}(S'), \quad A_{ij} = \frac{e^{S'_{ij}}}{\sum_{m} e^{S'_{im}}}",
        r"A = \operatorname{softmax}(E'), \quad A_{ij} = \frac{e^{E'_{ij}}}{\sum_{m} e^{E'_{im}}}",
        ("query", "key"),
        lambda opened: opened.weights,
        step_changes.weighed,
        keys_down=r"A = \operatorname{softmax}(S') \text{ down each column}, \quad "
        r"A_{ji} = \frac{e^{S'_{ji}}}{\sum_{m} e^{S'_{mi}}}",
    ),
    "output": Step(
        "Output",
        "Each query fetches a mixture of the values, by its weights.",
        r"O = A V, \quad o_i = \sum_{j} A_{ij}\, v_j",
        r"C = A V^{\top}, \quad c_i = \sum_{j} A_{ij}\, v_j",
        ("query", "d_v"),
        lambda opened: opened.attention.output,
        step_changes.mixed,
        keys_down=r"O = A^{\top} V, \quad o_i = \sum_{j} A_{ji}\, v_j",
    ),
    "joined": Step(
        "Heads joined",
        "All heads' outputs side by side, times a last learned matrix: the attention's output.",
        r"Y = [\,O_1 \; \cdots \; O_h\,]\, W_{O}",
        r"Y = W_{O}\, [\,C_1 \; \cdots \; C_h\,]^{\top}",
        ("token", "d_model"),
        lambda opened: opened.entry.joined,
        step_changes.joined,
    ),
}


# Explanations of these steps in cross-attention.
CROSSING = {
    "embeddings": "The layer's input from the decoder, one vector of numbers per step. A step is named after the word "
    "that it produces; it has read the words before.",
    "query": "Each decoder step's question: its vector times a learned matrix.",
    "key": "How each source token can be found: its vector m from the encoder, times a second matrix.",
    "value": "The content that each source token gives to the steps that attend to it: its vector m from the encoder, "
    "times a third matrix.",
}


# A bias's parts, by their names in `Layer.bias_parts`.
BIASES = {
    "ALiBi": "a number that grows evenly with the key's position, by the head's own slope (ALiBi)",
    "relative positions": "a learned number for the distance of its query and key (relative positions)",
    "content to position": "how well the query fits the distance to the key (content to position)",
    "position to content": "how well the key fits the distance to the query (position to content)",
    "given": "a given number",
}


def explanation_of(opened: OpenHead, name: str) -> str:
    """Explain a `STEPS` name for this head."""
    if name == "embeddings" and opened.layer > 0:
        return (
            "The layer's input: one vector of numbers per token. Here these are the **hidden states** that earlier "
            "layers made from the embeddings."
        )
    if name == "biased" and opened.bias_parts:
        return f"This model adds to each score {', and '.join(BIASES.get(part, part) for part in opened.bias_parts)}."
    return CROSSING.get(name, STEPS[name].explanation) if _writes(opened) else STEPS[name].explanation


def _writes(opened: OpenHead) -> bool:
    """Return whether the queries are the words that a decoder writes."""
    return opened.stream == "cross" and has_target(opened.trace.attention_streams)


def steps_of(opened: OpenHead) -> dict[str, Step]:
    """Return the model's steps in order; unrecorded ones' functions return None."""
    return {name: step for name, step in STEPS.items() if step.applies(opened)}


def transposed(step: Step, notation: str) -> bool:
    """Return whether a notation transposes this step's matrix; E = Qᵀ K and C = A Vᵀ keep query rows."""
    if notation == "keys down":
        return step.axes == ("query", "key")
    return notation == "columns" and step.axes != ("query", "key") and step.label != "Output"


def shape_of_step(step: Step, matrix: Tensor, notation: str = "rows", *, crossing: bool = False) -> tuple[str, str]:
    """Return a shape in words, "9 queries × 9 keys", and in LaTeX."""
    order = [1, 0] if transposed(step, notation) else [0, 1]
    words = " × ".join(f"{matrix.shape[axis]} {_counted(step.axes[axis], matrix.shape[axis])}" for axis in order)
    symbols = {name: "m" if crossing and name == "key" else symbol for name, (_, symbol) in AXES.items()}
    return words, r" \times ".join(symbols[step.axes[axis]] for axis in order)


def step_tensors(opened: OpenHead) -> dict[str, Tensor]:
    """Return every step's tensors by name, 2-D: `head_tensors` and more if known.

    `softcapped`, `biased`, `unrotated_query`, `unrotated_key`; `bias_…` and `embeddings_…` summands; `query_weight` and
    `query_bias` (1, d_k), likewise key, value, output.
    """
    tensors = head_tensors(opened.trace, opened.layer, opened.head, opened.stream)
    tensors |= {name: STEPS[name].function(opened) for name in ("softcapped", "biased") if STEPS[name].applies(opened)}
    tensors |= {f"bias_{name.replace(' ', '_')}": part for name, part in opened.bias_parts.items()}
    if opened.rotates:
        tensors |= {f"unrotated_{name}": opened.unrotated(name) for name in ("query", "key")}
    for name in opened.projections:
        matrix = opened.projections[name] if name == "output" else opened.projection(name)
        if matrix is not None:
            tensors[f"{name}_weight"] = matrix.weight
            tensors |= {} if matrix.bias is None else {f"{name}_bias": matrix.bias[None]}
    parts = {f"embeddings_{name.replace(' ', '_')}": part for name, part in opened.parts.items()}
    return {name: tensor for name, tensor in (tensors | parts).items() if tensor is not None}


def _counted(axis: str, count: int) -> str:
    plural = AXES[axis][0]
    return plural if count != 1 else {"queries": "query"}.get(plural, plural.removesuffix("s"))


def formula_of(opened: OpenHead, name: str, notation: str = "rows") -> str:
    """Return the LaTeX formula of a `STEPS` name in one of `NOTATIONS`."""
    formula = STEPS[name].formula(notation).replace(r"\lambda", _factor(opened))
    formula = _with_biases(formula, opened)
    if opened.stream in CROSSING_STREAMS and name in ("key", "value"):
        # The encoder's vectors M, where the query is made of the decoder's X.
        formula = re.sub(r"(?<![A-Za-z\\])X(?![A-Za-z])", "M", formula).replace("x_j", "m_j")
    if name == "scores" and opened.rotates:
        return _of_rotated(formula)
    if name == "weights" and opened.attention.sinks is not None:
        formula = formula.replace(r"{\sum_{m}", r"{e^{\text{sink}} + \sum_{m}")
    return _after_other_steps(formula, opened, name)


def _factor(opened: OpenHead) -> str:
    scale, d_model = opened.factor, opened.d_model
    widths = {"d_k": opened.d_k, r"d_{\text{model}}": d_model}
    for symbol, width in widths.items():
        if width and math.isclose(scale, 1 / math.sqrt(width), rel_tol=1e-6):
            return rf"\tfrac{{1}}{{\sqrt{{{symbol}}}}}"
    return "" if scale == 1 else f"{scale:.4g}"


def _with_biases(formula: str, opened: OpenHead) -> str:
    for name in (name for name, matrix in opened.projections.items() if matrix.bias is not None):
        letter = name[0].upper()
        if letter == "O" and "W_{O}" in formula:
            formula += " + b_{O}"
        product = rf"(X W_{{{letter}}}|W_{{{letter}}} X|W_{{{letter}}}\\, x_[ij])"
        formula = re.sub(product, rf"\1 + b_{{{letter}}}", formula)
    return formula


def _of_rotated(formula: str) -> str:
    """Write q' and k'; braced if transposed, because LaTeX takes one superscript per letter."""
    primed = re.sub(r"(?<![A-Za-z\\])([QKqk])(?![A-Za-z])", r"\1'", formula)
    return re.sub(r"([qk]'_[ij])\^", r"{\1}^", primed)


def _after_other_steps(formula: str, opened: OpenHead, name: str) -> str:
    """Add a prime per step, so that letters stay unique."""
    call = opened.attention
    steps = {"biased": (call.softcap,), "allowed": (call.softcap, call.bias), "weights": (call.softcap, call.bias)}
    more = sum(term is not None for term in steps.get(name, ()))
    return re.sub("'+", lambda primes: primes[0] + "'" * more, formula)
