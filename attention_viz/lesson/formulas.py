"""Formulas as MathML, which browsers draw without scripts or fonts."""

from functools import cache

from latex2mathml.converter import convert

__all__ = ["mathml"]


@cache
def mathml(formula: str, *, block: bool = False) -> str:
    """Return a formula of ours, in LaTeX, as MathML; `block` puts it on a line of its own."""
    return convert(formula, display="block" if block else "inline")
