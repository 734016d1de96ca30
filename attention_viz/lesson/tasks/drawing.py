"""Tools for all tasks: hashed numbers, the sentence's words, arithmetic as text."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from attention_viz.lesson.exercise import Table, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.operation.attention import Attention, attend
from attention_viz.trace.spelling import number_repeats, visible
from attention_viz.trace.splitting import split_words
from attention_viz.views.style.wording import shortened

# The sentence of a task if the reader's text has too few words.
EXAMPLE = "The cat sat because it was tired."
# How far from the right number an answer may be, for whole numbers and for two decimals.
WHOLE, ROUNDED = 0.004, 0.006

_Thing = TypeVar("_Thing")


class Draw:
    """Seeded draws, equal on any machine and in any version."""

    def __init__(self, kind: str, seed: int, text: str) -> None:
        """Start draws for a kind of exercise, seed and text."""
        self._purpose = f"{kind}\0{seed}\0{text}".encode("utf-8", "surrogatepass")
        self._drawn = 0

    def below(self, count: int) -> int:
        """Draw an integer from 0 to `count` - 1."""
        self._drawn += 1
        digest = hashlib.sha256(self._purpose + self._drawn.to_bytes(8)).digest()
        return int.from_bytes(digest[:8]) % count

    def whole(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, inclusive."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[_Thing]) -> _Thing:
        """Draw one of several, with equal chances."""
        return things[self.below(len(things))]

    def order(self, things: Sequence[_Thing]) -> list[_Thing]:
        """Return a shuffled list (Fisher and Yates)."""
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def vector(self, width: int, limit: int = 3) -> list[int]:
        """Draw integers from −limit to limit, not all 0."""
        while True:
            numbers = [self.whole(-limit, limit) for _ in range(width)]
            if any(numbers):
                return numbers


def named(words: Sequence[str]) -> tuple[str, ...]:
    """Return a task's words: visible, short, repeats numbered."""
    return tuple(number_repeats([shortened(visible(word)) for word in words]))


def of_two_words(scene: Scene, least: int = 2) -> tuple[tuple[str, ...], str]:
    """Return the reader's words, or an example's if fewer than `least`, with a note."""
    if len(scene.words) >= least:
        return scene.words, ""
    return split_words(EXAMPLE), _note(least)


def hand_words(scene: Scene, draw: Draw, most: int, least: int = 1) -> tuple[tuple[str, ...], str]:
    """Return up to `most` consecutive different words, or an example's with a note if fewer than `least`."""
    different: dict[str, str] = {}
    for word in scene.words:
        different.setdefault(word.casefold(), word)
    words, note = tuple(different.values()), ""
    spoken = tuple(word for word in words if word[0].isalnum())
    words = spoken if len(spoken) >= most else words
    if len(words) < least:
        words, note = split_words(EXAMPLE), _note(least)
    count = min(most, len(words))
    start = draw.below(len(words) - count + 1)
    return named(words[start : start + count]), note


def _note(least: int) -> str:
    return (
        translate(
            "The chosen sentence has fewer than {least} different words, so this is about “{example}” here.",
            least=least,
            example=EXAMPLE,
        )
        + " "
    )


def dimensions(width: int) -> tuple[str, ...]:
    """Name a vector's numbers: "dim. 0", "dim. 1" and so on."""
    return tuple(translate("dim. {number}", number=c) for c in range(width))


def table(title: str, rows: Sequence[str], columns: Sequence[str], numbers: Sequence[Sequence[float]]) -> Table:
    """Return a table of an exercise's numbers."""
    return Table(title, tuple(rows), tuple(columns), tuple(tuple(map(float, row)) for row in numbers))


def vectors(scene: Scene, title: str, names: Sequence[str], rows: Sequence[Sequence[float]]) -> Table:
    """Return a table of vectors as rows, or columns in the reader's notation."""
    across = dimensions(len(rows[0]))
    if scene.notation == "columns":
        return table(title, across, names, list(zip(*rows, strict=True)))
    return table(title, names, across, rows)


def matrix(numbers: Sequence[Sequence[float]]) -> Tensor:
    """Return a table's numbers, (row, column), in float64."""
    return torch.tensor(numbers, dtype=torch.float64)


def shares(logits: Sequence[float], values: Tensor | None = None) -> Attention:
    """Attend with one query's logits, (1, key), unscaled; values default to keys."""
    keys = torch.eye(len(logits), dtype=torch.float64)
    return attend(matrix([logits]), keys, keys if values is None else values, scale=1.0)


def factor(number: float) -> str:
    """Write a number as a factor: (−1)."""
    return f"({written(number)})" if number < 0 else written(number)


def percent(part: float) -> str:
    """Write a change with one decimal, as "12.3 %"."""
    return f"{100 * part:.1f} %"


def products(left: Sequence[float], right: Sequence[float]) -> str:
    """Write out a dot product: 2·1 + (−1)·3."""
    return " + ".join(f"{factor(a)}·{factor(b)}" for a, b in zip(left, right, strict=True))
