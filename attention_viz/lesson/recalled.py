"""A text with names and colours, read by a delta rule: a question's weight for each colour."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.lesson.scene import Scene
from attention_viz.lesson.without_softmax import delta
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.once import once


class Rule(NamedTuple):
    """A layer's rule, as a label and after “if”: the part of its β, and whether it erases before it writes."""

    label: str
    clause: str
    part: float
    erases: bool


RULES = {
    "adds": Rule("only adds", "it only adds", 1.0, erases=False),
    "half": Rule("half the β", "it uses half the β", 0.5, erases=True),
    "erases": Rule("erases", "it erases", 1.0, erases=True),
}
_PAIRS = (("ben", "blue"), ("anna", "red"), ("ben", "green"))
NAMES = tuple(dict.fromkeys(name for name, _ in _PAIRS))
OPENING = NAMES.index("ben")


@dataclass(frozen=True, eq=False)
class Recalled:
    """The text with a question about one name, by its place in `NAMES`."""

    scene: Scene
    name: int

    @property
    def words(self) -> tuple[str, ...]:
        """The text, word by word."""
        pairs = [word for pair in _PAIRS for word in (*pair, ",")]
        return (*pairs[:-1], ".", NAMES[self.name], "?")

    @property
    def source(self) -> str:
        """The line below the finding."""
        return f"{self.called}: how much of each value arrives at the last “?”"

    @property
    def called(self) -> str:
        """Who reads it."""
        return "A delta rule with perpendicular keys"

    @property
    def colours(self) -> dict[str, int]:
        """Each colour's position."""
        return {colour: self.words.index(colour) for _, colour in _PAIRS}

    @property
    def own(self) -> tuple[str, ...]:
        """The colours of the name, the latest last."""
        return tuple(colour for name, colour in _PAIRS if name == NAMES[self.name])

    @once
    def head(self) -> TokenMixer:
        """The head that erases."""
        seen, written = list[int](), list[float]()
        for word in self.words:
            seen.append(NAMES.index(word) if word in NAMES else seen[-1])
            written.append(float(word in self.colours))
        names, values = torch.eye(len(NAMES))[seen].tolist(), torch.eye(len(seen)).tolist()
        return delta(names, names, values, written)

    def by_rule(self, rule: str) -> TokenMixer:
        """Return the head by a rule of `RULES`."""
        _, _, part, erases = RULES[rule]
        assert self.head.write is not None  # a delta rule has a β
        return replace(self.head, write=part * self.head.write, kind=self.head.kind if erases else "SSD")

    def row(self, rule: str) -> Float[Tensor, " word"]:
        """Return the question's weights by a rule."""
        return self.by_rule(rule).weights[-1]

    def got(self, rule: str, colours: Sequence[str] = ()) -> list[float]:
        """Return the question's weight for each colour, or for some."""
        row, places = self.row(rule), self.colours
        return [float(row[places[colour]]) for colour in colours or places]
