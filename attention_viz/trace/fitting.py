"""Fit a text into a token limit, in whole words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Fit", "fit_text"]


@dataclass(frozen=True)
class Fit:
    """Which part of a text can be read at once: `kept` followed by `cut` is the text exactly as it was typed.

    Attributes:
        kept: what fits.
        cut: what does not; empty where all of it fits.
        count: how many tokens the whole text has, special ones included.
        limit: how many can be read at once; None where nothing limits it.
    """

    kept: str
    cut: str
    count: int
    limit: int | None


def fit_text(text: str, count: Callable[[str], int], limit: int | None) -> Fit:
    """Keep as many whole first words as fit; of one endless word, characters."""
    total = count(text)
    if limit is None or total <= limit:
        return Fit(text, "", total, limit)
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if not ends:  # nothing but blanks, and a limit below what a tokenizer adds by itself
        return Fit("", text, total, limit)
    end = _last_fitting(ends, lambda at: count(text[:at]) <= limit)
    if end is None:
        end = _last_fitting(range(1, ends[0] + 1), lambda at: count(text[:at]) <= limit) or 1
    return Fit(text[:end], text[end:], total, limit)


def _last_fitting(ends: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """Bisect for the last end that fits; None if none does."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(ends[middle]) else (low, middle)
    return ends[low - 1] if low else None
