"""Seeded word vectors and weights.

Numbers are hashes of seed and purpose, equal on any machine and version.
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


def word_vectors(words: Sequence[str], d_model: int, seed: int) -> Float[Tensor, "word d_model"]:
    """Return seeded word vectors, mean 0, variance 1, equal in any text.

    Case and accent encoding don't matter.
    """
    return torch.stack([seeded_numbers(f"{seed}/word/{_folded(word)}", d_model) for word in words])


def sinusoidal(positions: int, d_model: int) -> Float[Tensor, "position d_model"]:
    """Return sinusoidal positions; odd widths end on a sine.

    Source: Vaswani et al. 2017, section 3.5.
    """
    place = torch.arange(positions, dtype=torch.float64)[:, None]
    column = torch.arange(d_model)
    angle = place / 10_000 ** ((column - column % 2) / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())


def word_id(word: str) -> int:
    """Return a word's text-independent id, ignoring case."""
    return zlib.crc32(_folded(word).encode())


def seeded_numbers(purpose: str, count: int) -> Float[Tensor, " count"]:
    """Return evenly spread numbers, mean 0, variance 1, hashed from their purpose."""
    digest = hashlib.shake_256(f"attention from scratch/{purpose}".encode()).digest(4 * count)
    drawn = numpy.frombuffer(digest, dtype="<u4")
    unit = (drawn + 0.5) / 2**32
    return torch.tensor((2 * unit - 1) * math.sqrt(3), dtype=torch.float32)
