"""Whether matrices from weights match how heads really write.

With norms and patterns fixed, a later head's slope by an earlier head's fetched value is the product of their
matrices times a norm's factor. If anything else, such as a norm after adding or a gate, breaks that, the numbers it
touches are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_viz.circuits.matrices import Around, WordMatrices
from attention_viz.circuits.opened import Leaf, OpenedRun

__all__ = ["Proof", "prove"]

# How far a slope may be from the direction that the weights say, of the slope's own length.
_BOUND = 2e-3


@dataclass(frozen=True)
class Proof:
    """A run's verdict on matrices.

    Attributes:
        composed: readers ("query", "key", "value") that match every earlier head.
        embedded: every layer's values match on words.
        keyed: its queries and keys match on words.
        worded: every head matches in writing to words.
    """

    composed: frozenset[str]
    embedded: bool
    keyed: bool
    worded: bool


def prove(opened: OpenedRun, numbers: Sequence[int], layers: Sequence[Around], words: WordMatrices) -> Proof:
    """Compare matrix products with a run's slopes."""
    heads = {leaf.call: leaf for leaf in opened.leaves if leaf.kind == "head"}
    written = [heads.get(number) for number in numbers]
    table = [leaf for leaf in opened.leaves if leaf.kind == "embedding"]
    names = ("query", "key", "value")
    composed, embedded = set(names), set(names)
    for layer, (number, around) in enumerate(zip(numbers, layers, strict=True)):
        for name in names:
            matrix: Tensor | None = getattr(around, name)
            if matrix is None:
                composed.discard(name)
                embedded.discard(name)
                continue
            read: Tensor = getattr(opened.calls[number], name)[:, 0]
            mix = torch.randn(read.shape, generator=torch.Generator().manual_seed(layer))
            asked = (read * mix.to(read)).sum()
            slopes = _slopes(asked, [*written[:layer], *table], 0)
            lengths = around.lengths.get(name, torch.ones(len(matrix)))
            direction = torch.einsum("hmd,hd->m", matrix, mix.to(matrix) * lengths.to(matrix)[:, None])
            for before, slope in zip(layers[:layer], slopes, strict=False):
                if before.output is None or slope is None or not _along(slope, before.output @ direction):
                    composed.discard(name)
            if not any(slope is not None and _along(slope, direction) for slope in slopes[layer:]):
                embedded.discard(name)
    return Proof(
        frozenset(composed), "value" in embedded, {"query", "key"} <= embedded, _worded(opened, written, layers, words)
    )


def _worded(opened: OpenedRun, written: Sequence[Leaf | None], layers: Sequence[Around], words: WordMatrices) -> bool:
    if words.unembedding is None or opened.output.ndim != 2 or opened.output.shape[1] != len(words.unembedding):
        return False
    word = opened.output[-1].argmax()
    slopes = _slopes(opened.output[-1, word], written, -1)
    direction = words.towards(word[None])[:, 0]
    return all(
        around.output is not None and slope is not None and _along(slope, around.output @ direction)
        for around, slope in zip(layers, slopes, strict=True)
    )


def _slopes(number: Tensor, leaves: Sequence[Leaf | None], position: int) -> list[Tensor | None]:
    """Slopes at a position: (head, d_v) for heads, (d_model,) for lookups."""
    there = [leaf.tensor for leaf in leaves if leaf is not None]
    if not there or not number.requires_grad:
        return [None] * len(leaves)
    found = iter(torch.autograd.grad(number, there, retain_graph=True, allow_unused=True))
    slopes = [None if leaf is None else next(found) for leaf in leaves]
    return [None if slope is None else slope.flatten(0, -3)[..., position, :].squeeze(0) for slope in slopes]


def _along(slope: Tensor, expected: Tensor) -> bool:
    """Return whether a slope points head by head as expected, not opposite."""
    if slope.shape != expected.shape:
        return False
    slope, expected = slope.double(), expected.double()
    size = (slope * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True).clamp_min(1e-30)
    return bool((size >= 0).all()) and bool((slope - size * expected).norm(dim=-1).le(_BOUND * slope.norm()).all())
