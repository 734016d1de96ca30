"""Fill a lesson's text: facts, formulas in the chosen notation, terms."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.glossary import TERMS
from attention_viz.steps.steps import NOTATIONS, STEPS

__all__ = ["lesson_text", "template"]

_TEXTS = Path(__file__).parent / "text"
_FACT = re.compile(r"\{\{ *([\w.]+) *\}\}")
_TERM = re.compile(r"\[([^\]]+)\]\(term:([^)]+)\)")


@cache
def template(name: str) -> str:
    """Return a lesson's Markdown with {{facts}}, {{formula.scores}} and [words](term:name)."""
    return (_TEXTS / f"{name}.md").read_text(encoding="utf-8").strip()


def lesson_text(
    name: str,
    facts: Mapping[str, str],
    notation: str = "rows",
    *,
    escape: Callable[[str], str] = str,
    term: Callable[[str, str], str] = lambda words, meaning: words,
) -> str:
    """Fill a lesson's text.

    Args:
        facts: by name, for {{name}}; formula.* is LaTeX, never with a reader's words.
    """
    if notation not in NOTATIONS:
        raise AttentionVizError(f"the notation {notation!r} was asked for; there are {', '.join(NOTATIONS)}")

    def fill(found: re.Match[str]) -> str:
        kind, _, step = found[1].partition(".")
        if kind == "formula" and step in STEPS:
            return f"$${STEPS[step].formula(notation).replace(chr(92) + 'lambda', _SCALE)}$$"
        if found[1] not in facts:
            raise AttentionVizError(f"the lesson {name!r} tells {found[1]!r}, which wasn't computed; it has {[*facts]}")
        # A formula of the lesson's own is LaTeX and ours; any other fact may be the reader's words.
        return f"$${facts[found[1]]}$$" if kind == "formula" else escape(facts[found[1]])

    def mark(found: re.Match[str]) -> str:
        if found[2] not in TERMS:
            raise AttentionVizError(f"the lesson {name!r} uses the term {found[2]!r}, which the glossary doesn't have")
        return term(found[1], TERMS[found[2]])

    # Terms first: what is filled in is the reader's, and none of our marks are looked for in it.
    return _FACT.sub(fill, _TERM.sub(mark, template(name)))


_SCALE = r"\tfrac{1}{\sqrt{d_k}}"
