"""Fit a text into a token limit, by whole words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Fit", "fit_text"]


@dataclass(frozen=True)
class Fit:
    """The part of a text that fits a token limit: `kept` followed by `cut` is the exact text.

    Attributes:
        kept: the part that fits.
        cut: the rest; empty if the whole text fits.
        count: the whole text's tokens, special tokens included.
        limit: the most tokens that the model reads; None for no limit.
    """

    kept: str
    cut: str
    count: int
    limit: int | None


def fit_text(text: str, count: Callable[[str], int], limit: int | None) -> Fit:
    """Keep the first whole words that fit; if the first word alone is too long, its first characters."""
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
    """Bisect for the last end that fits; None for none."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(ends[middle]) else (low, middle)
    return ends[low - 1] if low else None
