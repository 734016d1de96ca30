"""Openings of numbers that become shares."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.translation import translate

__all__ = ["ScoreSliders"]

# A slider's lowest score in tenths, and its number of steps.
_LOWEST, _STEPS = -50, 100


@dataclass(frozen=True)
class ScoreSliders:
    """Scores to set until their softmax has the wanted shares; a guess is one number per score: tenths above −5.

    Attributes:
        names: of the scores.
        wanted: the shares, which add up to 1.
        scores: the model's own.
        replies: to a guess that is right, near or wrong.
    """

    kind: ClassVar[str] = "sliders"
    bars: ClassVar[bool] = True
    right: ClassVar[float] = 0.02
    near: ClassVar[float] = 0.08
    names: tuple[str, ...]
    wanted: tuple[float, ...]
    scores: tuple[float, ...]
    replies: tuple[Reply, Reply, Reply]

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Move the sliders until each share reaches its dashed mark.")

    @property
    def numbers(self) -> tuple[int, int]:
        """One number per score: its steps."""
        return len(self.names), _STEPS

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return 0, 1 or 2: the wanted shares, nearly, or not."""
        powers = [math.exp((_LOWEST + one) / 10) for one in numbers]
        off = max(abs(one / sum(powers) - share) for one, share in zip(powers, self.wanted, strict=True))
        return 0 if off <= self.right else 1 if off <= self.near else 2

    def before(self) -> Mapping[str, object]:
        """Return the wanted shares: the question names them."""
        return {
            "names": list(self.names),
            "wanted": list(self.wanted),
            "lowest": _LOWEST,
            "steps": _STEPS,
            "off": [self.right, self.near],
            "label": translate("Scores and their shares"),
            "score": translate("score"),
            "share": translate("share"),
            "target": translate("wanted"),
        }

    def after(self) -> Mapping[str, object]:
        """Return the model's own scores."""
        return {
            "scores": list(self.scores),
            "own": translate("bold: the model’s scores (the rest as one)"),
        }
