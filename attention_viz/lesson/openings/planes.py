"""Openings in a plane: put a word on a map, and turn a query against a key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.translation import translate

__all__ = ["TurnedQuery", "WordMap"]

_PERCENT, _TURN = 100, 360


@dataclass(frozen=True)
class WordMap:
    """A map of words that lacks one; a guess is its place in percent: from the left, from the top.

    Attributes:
        words: the other words.
        points: theirs, from 0 to 1: from the left, from the top.
        point: the missing word's.
        replies: one for each of the other words, if it is nearest to the guess.
    """

    kind: ClassVar[str] = "map"
    bars: ClassVar[bool] = True
    word: str
    words: tuple[str, ...]
    points: tuple[tuple[float, float], ...]
    point: tuple[float, float]
    replies: tuple[Reply, ...]

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Drag the word to its place, or press the place. The arrow keys move it, too.")

    @property
    def numbers(self) -> tuple[int, int]:
        """Two numbers: a place in percent."""
        return 2, _PERCENT

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return the word that is nearest to the guess."""
        guess = [one / _PERCENT for one in numbers]
        return min(range(len(self.points)), key=lambda at: math.dist(self.points[at], guess))

    def before(self) -> Mapping[str, object]:
        """Return the other words and their places."""
        return {
            "word": self.word,
            "words": list(self.words),
            "points": [list(point) for point in self.points],
            "label": translate("Map of the words"),
            "handle": translate("Place of “{word}”", word=self.word),
            "nearest": translate("nearest to"),
        }

    def after(self) -> Mapping[str, object]:
        """Return the word's own place."""
        return {"point": list(self.point)}


@dataclass(frozen=True)
class TurnedQuery:
    """A query to turn until its score is half of the largest; a guess is its angle from the key, from 0 to 359 degrees.

    Attributes:
        lengths: the query's and the key's.
        angle: the model's own, in degrees.
        replies: to a guess that is right, near or wrong.
    """

    kind: ClassVar[str] = "turn"
    bars: ClassVar[bool] = True
    goal: ClassVar[int] = 60
    right: ClassVar[int] = 5
    near: ClassVar[int] = 12
    word: str
    other: str
    lengths: tuple[float, float]
    angle: float
    replies: tuple[Reply, Reply, Reply]

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Turn the orange arrow: drag it, or use the arrow keys.")

    @property
    def numbers(self) -> tuple[int, int]:
        """One number: an angle."""
        return 1, _TURN - 1

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return 0, 1 or 2: half of the largest score, nearly, or not."""
        off = abs(min(numbers[0], _TURN - numbers[0]) - self.goal)
        return 0 if off <= self.right else 1 if off <= self.near else 2

    def before(self) -> Mapping[str, object]:
        """Return the lengths and the angle that the browser compares a guess with."""
        return {
            "word": self.word,
            "other": self.other,
            "lengths": list(self.lengths),
            "goal": self.goal,
            "steps": [self.right, self.near],
            "label": translate("Query and key as arrows"),
            "handle": translate("Direction of the query"),
            "degrees": translate("{angle}° from the key", angle="{angle}"),
            "score": translate("score"),
            "query": translate("query of “{word}”", word=self.word),
            "key": translate("key of “{word}”", word=self.other),
        }

    def after(self) -> Mapping[str, object]:
        """Return the model's own angle."""
        return {"angle": self.angle, "own": translate("in the model: {angle}°", angle=f"{self.angle:.1f}")}
