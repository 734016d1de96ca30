"""A step's formula with this head's scale, bias, rotation, softcap and sink."""

import math
import re

from attention_viz.steps.head import OpenHead
from attention_viz.steps.steps import STEPS

__all__ = ["formula_of"]


def formula_of(opened: OpenHead, name: str, notation: str = "rows") -> str:
    """Return the LaTeX formula of a `STEPS` name in one of `NOTATIONS`."""
    formula = STEPS[name].formula(notation).replace(r"\lambda", _factor(opened))
    formula = _with_biases(formula, opened)
    if opened.stream == "cross" and name in ("key", "value"):
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
    """With q' and k'; braced if transposed, because LaTeX takes one power a letter."""
    primed = re.sub(r"(?<![A-Za-z\\])([QKqk])(?![A-Za-z])", r"\1'", formula)
    return re.sub(r"([qk]'_[ij])\^", r"{\1}^", primed)


def _after_other_steps(formula: str, opened: OpenHead, name: str) -> str:
    """A prime per step, so that letters stay unique."""
    call = opened.attention
    steps = {"biased": (call.softcap,), "allowed": (call.softcap, call.bias), "weights": (call.softcap, call.bias)}
    more = sum(term is not None for term in steps.get(name, ()))
    return re.sub("'+", lambda primes: primes[0] + "'" * more, formula)
