"""Weights between kinds of tokens, beside chance."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from attention_viz.analysis.words import Words

# Attention sinks; chance is counted apart from them.
RESTING = ("special", "first token")
KINDS = ("word", "word piece", "number", "pronoun", "function word", "punctuation", "patch", *RESTING)

_OF_WORDS = {"pronoun": "pronoun", "function": "function word", "sign": "punctuation", "special": "special"}
_AWAKE = torch.tensor([float(kind not in RESTING) for kind in KINDS])
_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_ONE_HOT = numpy.eye(len(KINDS), dtype=numpy.float32)


class Looks(NamedTuple):
    """Weights between kinds, summed over queries.

    Attributes:
        expected: with weight outside sinks spread evenly; for sinks, all weight.
        pairs: number of visible pairs.
    """

    weight: Float64[Tensor, "head query_kind key_kind"]
    expected: Float64[Tensor, "head query_kind key_kind"]
    pairs: Int64[Tensor, "query_kind key_kind"]


def kinds_of(words: Words, *, looks_back: bool, seen: bool = False) -> tuple[int, ...]:
    """Return each token's index in `KINDS`; `seen` if all are an image's patches, even without a place."""
    tokens, found, carrying = words.tokens, list[int](), words.carrying.tolist()
    for word, pieces in enumerate(words.pieces):
        kind = _OF_WORDS.get(words.kinds[word], "word")
        if kind == "word" and words.texts[word].isnumeric():
            kind = "number"
        for at, position in enumerate(pieces):
            # An apostrophe is a mark inside a word, too.
            mark = words.kinds[word] not in ("special", "padding") and not carrying[position]
            own = "punctuation" if mark else "word piece" if at and kind == "word" else kind
            patch = seen or tokens.regions[position] is not None or position in tokens.patches
            own = "patch" if patch and kind not in ("special", "padding") else own
            found.append(_PLACES[own])
    real = next((place for place, padding in enumerate(tokens.padding) if not padding), None)
    if looks_back and real is not None and not tokens.special[real]:
        found[real] = _PLACES["first token"]
    return tuple(found)


def looks_of(
    weights: Float[Tensor, "head row key"],
    open_to: Bool[Tensor, "row key"],
    queries: Sequence[int],
    keys: Sequence[int],
) -> Looks:
    """Sum some rows of weights by kind."""
    rows, columns = _one_hot(queries), _one_hot(keys)
    # Where a weight is not a number its whole row is none, and the first of it tells.
    weights = torch.nan_to_num(weights) if bool(weights[..., 0].isnan().any()) else weights
    # Queries are summed before keys: a product with so few columns would take twice as long.
    given = (rows.T @ weights) @ columns
    there = open_to.float() @ columns
    awake, resting = there * _AWAKE, there * (1 - _AWAKE)
    spread = awake / awake.sum(dim=-1, keepdim=True).clamp_min(1)
    evenly = resting / there.sum(dim=-1, keepdim=True).clamp_min(1)
    free = weights @ (columns @ _AWAKE)
    # Every head's queries spread it alike, so this is one matrix for all heads: (row, query kind and key kind).
    spread = (rows[:, :, None] * spread[:, None]).flatten(1)
    expected = (free @ spread).unflatten(-1, (len(KINDS), len(KINDS))) + rows.T @ evenly
    return Looks(given.double(), expected.double(), (rows.T @ there).round().long())


def _one_hot(kinds: Sequence[int]) -> Float[Tensor, "token kind"]:
    return torch.from_numpy(_ONE_HOT[list(kinds)])
