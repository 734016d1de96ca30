"""Fill a lesson's text: facts, formulas in the chosen notation, and explained terms."""

import re
from collections.abc import Callable, Mapping
from functools import cache

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.translation import TEXTS, current_language, translate
from attention_viz.steps.steps import NOTATIONS, STEPS

__all__ = ["TERMS", "lesson_text", "template"]

TERMS: dict[str, str] = {
    "ablate": "To switch off a head, by setting its output to zero or to its mean, and see what changes.",
    "attention": "A way to remake each word's vector as a mixture of all vectors, in shares that add up to 1.",
    "attention sink": "A token that gets much weight because a head finds nothing elsewhere, often the first one.",
    "attention weight": "The share, from 0 to 1, that one token takes from another; the weights of a row add up to 1.",
    "causal mask": "A mask that hides all later tokens from each token, as in models that write word by word.",
    "checkpointing": "Storing few of the numbers that training needs later, and computing the others a second time.",
    "convex hull": "The shape of a rubber band around some points: all their mixtures, in shares that add up to 1.",
    "cosine": "The dot product of two vectors divided by both lengths: from −1 to 1, which is the same direction.",
    "cross-attention": "Attention between two texts: queries from the one written, keys and values from the one read.",
    "decay": "A factor that shrinks a state before each new token, so that old tokens fade.",
    "delta rule": "A rule that erases a state's old value for a key before it writes the new one.",
    "dot product": "Two vectors multiplied number by number and added up: large if both point the same way.",
    "embedding": "The vector that represents a token when it enters the model.",
    "entropy": "How evenly shares are spread: 0 if one has everything, and largest if all are equal.",
    "flash attention": "A way to compute attention block by block, so that the weights of all pairs are never stored.",
    "gradient": "How much a result changes with the numbers behind it; training follows it, and slows down near 0.",
    "grouped-query attention": "Attention whose heads have queries of their own, but share keys and values in groups.",
    "head": "One of several attentions that work side by side in a layer, each with its own queries, keys and values.",
    "key": "A token's vector for being found: every query is compared with it.",
    "KV cache": "The keys and values of all tokens so far, which a model stores so that it computes none twice.",
    "latent attention": "Attention whose heads make their keys and values from one stored vector per token.",
    "layer": "One round of attention and an MLP, which both add to each token's vector; a model stacks several.",
    "layer norm": "A step that brings a vector to a common length before a part reads it, since a stream's sums grow.",
    "linear attention": "Attention without a softmax: each token adds its key times its value to a fixed-size state.",
    "logit": "The number that a model gives to each possible next token; a softmax makes probabilities of them all.",
    "mask": "A table that says which tokens each token may look at.",
    "mixed precision": "Computing with two-byte numbers where they are exact enough, and with four bytes elsewhere.",
    "MLP": "The part of a layer that adds a learned vector for each pattern in a token (multilayer perceptron).",
    "output": "The result of attention for a token: the values of all tokens, mixed by its weights.",
    "padding": "Tokens that fill up the shorter sentences of a batch to the length of the longest.",
    "position": "A token's place in the text, counted from 0.",
    "projection": "A vector times a learned matrix, which gives another vector, often a narrower one.",
    "query": "The vector with which a token searches: it is compared with every key.",
    "recurrent network": "A model that reads one word after the other, and carries one vector along, its state.",
    "residual stream": "A token's vector on its way through the model; every head and MLP adds its output to it.",
    "sampling": "Drawing the next token at random, each with its probability.",
    "saturation": "A function is saturated if it hardly reacts any more, as a softmax that gives nearly all to one.",
    "score": "How well a query suits a key: in today's models, their dot product.",
    "seed": "A number that random numbers are made from; the same seed gives the same numbers.",
    "sliding window": "A mask that lets each token look at itself and the last few tokens before it.",
    "softmax": "A function that turns any numbers into shares that add up to 1; larger numbers get larger shares.",
    "state": "What a model carries from word to word: a vector, or in linear attention a table of numbers.",
    "temperature": "A number that divides the inputs of the softmax: below 1 shares get sharper, above 1 more even.",
    "token": "A piece of text that a model reads as one unit: a word, part of a word, or a sign.",
    "training": "Adjusting a model's numbers step by step, so that its predictions on very many examples get better.",
    "transformer": "A model made of layers of attention and MLPs; nearly all language models today are transformers.",
    "unembedding": "A language model's last matrix: the dot product of its row and the last vector is a token's logit.",
    "value": "The vector that a token passes on to the tokens that look at it.",
    "vector": "A list of numbers.",
}


_FACT = re.compile(r"\{\{ *([\w.]+) *\}\}")
_TERM = re.compile(r"\[([^\]]+)\]\(term:([^)]+)\)")
_SCALE = r"\tfrac{1}{\sqrt{d_k}}"


def template(name: str) -> str:
    """Return a lesson's Markdown with {{facts}}, {{formula.scores}} and [words](term:name), in the current language."""
    return _template(name, current_language())


@cache
def _template(name: str, language: str) -> str:
    path = TEXTS / language / f"{name}.md"
    path = path if path.exists() else TEXTS / "en" / f"{name}.md"
    return path.read_text(encoding="utf-8").strip()


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
        raise AttentionVizError(f"unknown notation {notation!r}; choose {' or '.join(NOTATIONS)}")

    def fill(found: re.Match[str]) -> str:
        kind, _, step = found[1].partition(".")
        if kind == "formula" and step in STEPS:
            return f"$${STEPS[step].formula(notation).replace(chr(92) + 'lambda', _SCALE)}$$"
        if found[1] not in facts:
            raise AttentionVizError(
                f"lesson {name!r} uses the fact {found[1]!r}, which wasn't computed; it has {[*facts]}"
            )
        # A formula of the lesson's own is LaTeX and ours; any other fact may be the reader's words.
        return f"$${facts[found[1]]}$$" if kind == "formula" else escape(facts[found[1]])

    def mark(found: re.Match[str]) -> str:
        if found[2] not in TERMS:
            raise AttentionVizError(
                f"lesson {name!r} uses the term {found[2]!r}, which isn't in TERMS; add it to lesson/render.py"
            )
        return term(found[1], translate(TERMS[found[2]]))

    # Terms first: filled-in facts may be the reader's words, which must not be read as our marks.
    return _FACT.sub(fill, _TERM.sub(mark, template(name)))
