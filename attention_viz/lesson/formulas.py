"""Formulas as MathML, which browsers draw without scripts or fonts."""

import re
from collections.abc import Sequence
from functools import cache

from latex2mathml.converter import convert

__all__ = ["mathml", "words_and_symbols"]

# What plain text writes with an underscore: one letter, and a subscript that our formulas have.
_SYMBOL = re.compile(r"\b([A-Za-z])_(Q|K|V|O|k|v|model)\b")


@cache
def mathml(formula: str, *, block: bool = False) -> str:
    """Return a formula of ours, in LaTeX, as MathML; `block` puts it on a line of its own."""
    return convert(formula, display="block" if block else "inline")


def words_and_symbols(text: str) -> Sequence[tuple[str, str]]:
    """Split plain text at symbols such as W_Q; return each part with "" or the symbol's LaTeX."""
    found = list[tuple[str, str]]()
    end = 0
    for symbol in _SYMBOL.finditer(text):
        letter, below = symbol.groups()
        found += [(text[end : symbol.start()], ""), (symbol[0], f"{letter}_{{{_upright(below)}}}")]
        end = symbol.end()
    return [part for part in (*found, (text[end:], "")) if part[0]]


def _upright(below: str) -> str:
    return rf"\text{{{below}}}" if len(below) > 1 else below
