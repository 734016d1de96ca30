"""Texts for scans: by lot, of the words that a toy knows, and a few that are trouble."""

import random
from collections.abc import Sequence

__all__ = ["PROSE", "TRANSLATED", "by_lot"]

PROSE = (
    "The bank of the river was flooded.",
    "The cat sat because it was tired of the mat.",
    "it",
    "Über Nacht fiel 12 cm Schnee; niemand kam.",
    "She said: “No, no, no!”",
    "雨が降っています。",
    "one two one two one two",
)
TRANSLATED = ("the boy finds the key and he sells it", "the cat sees the dog", "the queen paints her house")


def by_lot(count: int, seed: int = 0, words: Sequence[str] = ("moon", "cheese", "frog", "ring")) -> list[str]:
    """So many texts of one to twelve words."""
    chance = random.Random(seed)
    return [" ".join(chance.choice(words) for _ in range(chance.randint(1, 12))) for _ in range(count)]
