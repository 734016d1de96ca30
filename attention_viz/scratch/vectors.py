"""Vectors of words and numbers of weights, from a seed.

Every number comes from a hash of the seed and of what it is for, so it is the same on any machine and in any version.
"""

import hashlib
import math
import unicodedata
import zlib
from collections.abc import Sequence

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["seeded_numbers", "sinusoidal", "word_id", "word_vectors"]


def word_vectors(words: Sequence[str], d_model: int, seed: int) -> Float[Tensor, "word d_model"]:
    """A vector a word, with mean 0 and variance 1: for a seed, the same word has the same in any text and anywhere.

    Capitals and ways of writing an accent make no difference.
    """
    return torch.stack([seeded_numbers(f"{seed}/word/{_folded(word)}", d_model) for word in words])


def sinusoidal(positions: int, d_model: int) -> Float[Tensor, "position d_model"]:
    """Sines and cosines that tell each place apart; an odd width ends on a sine.

    Source: Vaswani et al. 2017, section 3.5.
    """
    place = torch.arange(positions, dtype=torch.float64)[:, None]
    column = torch.arange(d_model)
    angle = place / 10_000 ** ((column - column % 2) / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())


def word_id(word: str) -> int:
    """A word's id: the same for a word anywhere, whatever its capitals."""
    return zlib.crc32(_folded(word).encode())


def seeded_numbers(purpose: str, count: int) -> Float[Tensor, " count"]:
    """Numbers with mean 0 and variance 1, evenly spread, from nothing but what they are for."""
    digest = hashlib.shake_256(f"attention from scratch/{purpose}".encode()).digest(4 * count)
    drawn = numpy.frombuffer(digest, dtype="<u4")
    unit = (drawn + 0.5) / 2**32
    return torch.tensor((2 * unit - 1) * math.sqrt(3), dtype=torch.float32)
