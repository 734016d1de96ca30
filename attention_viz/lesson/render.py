"""Fill a lesson's text: facts, formulas in the chosen notation, and explained terms."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from attention_viz.errors import AttentionVizError
from attention_viz.steps.steps import NOTATIONS, STEPS

__all__ = ["TERMS", "lesson_text", "template"]

TERMS: dict[str, str] = {
    "ablated": "Silenced on purpose, to see what changes without it.",
    "attention": "A way to make each word's vector anew as a mixture of all vectors, in shares that add up to 1.",
    "causal mask": "A mask under which nobody looks at what comes later, as in models that write word by word.",
    "checkpointing": "Keeping little of what training needs later, and computing the rest a second time.",
    "convex hull": "The shape of a rubber band around some points: all their mixtures, in shares that add up to 1.",
    "cosine": "The dot product of two vectors divided by both lengths: from −1 to 1, which is the same way.",
    "cross-attention": "Attention between two texts: queries from what is said, keys and values from what was read.",
    "dot product": "Two vectors multiplied number by number and added up: large where both point the same way.",
    "embedding": "The list of numbers that stands for a token.",
    "entropy": "How evenly shares are spread: 0 where one has all, and largest where all are equal.",
    "flash attention": "A way to compute attention block by block, so that the weights of all pairs are never stored.",
    "gradient": "How much a result changes with what it is made of; training follows it, and near 0 it stands still.",
    "head": "One of several attentions that work side by side in a layer, each with its own queries, keys and values.",
    "key": "What a token advertises: a vector that queries are compared with.",
    "layer": "One round of attention and what follows it; a model stacks several.",
    "mask": "A table of who may look at whom.",
    "mixed precision": "Computing with numbers of two bytes where that is exact enough, and of four elsewhere.",
    "output": "What attention makes of a token: the values of those it looks at, mixed by their weights.",
    "padding": "What fills up the shorter sentences of a batch to the length of the longest.",
    "position": "A word's place in the text, counted from 0; a model has to be told it.",
    "projection": "A vector times a learned matrix, which gives another vector, often a narrower one.",
    "query": "What a token asks for: a vector that is compared with every key.",
    "recurrent network": "A model that reads one word after the other, and carries along what it has read as a vector.",
    "saturation": "Where a function hardly reacts any more, as the softmax does once nearly all goes to one.",
    "score": "How well a query suits a key: in today's models their dot product.",
    "seed": "A number from which random numbers are made, the same ones each time.",
    "softmax": "What turns any numbers into shares above 0 that add up to 1, the largest share for the largest number.",
    "state": "The vector that a model which reads one word after the other carries along.",
    "temperature": "A number that divides what enters the softmax: below 1 the shares get sharper, above 1 evener.",
    "token": "A piece of text that a model reads as one: a word, a part of one, or a sign.",
    "transformer": "A model made of layers of attention; nearly all language models today are Transformers.",
    "value": "What a token hands over to those who look at it.",
    "vector": "A list of numbers.",
    "weight": "The share, from 0 to 1, that one token takes from another; the weights of a row add up to 1.",
}


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
    """Fill a lesson's text; facts are by name, and formula.* is LaTeX without the reader's words."""
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
