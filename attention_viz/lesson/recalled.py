"""A text with names and colours, read by a delta rule: a question's weight for each colour."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attention_viz.lesson.scene import Scene
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.once import once
from attention_viz.trace.trace import Trace

MODEL, STREAM = "recall", "mixer"


class Rule(NamedTuple):
    """A layer's rule: the part of its β, and whether it erases before it writes."""

    label: str
    part: float
    erases: bool


RULES = {
    "adds": Rule("only adds", 1.0, erases=False),
    "half": Rule("half the β", 0.5, erases=True),
    "erases": Rule("erases", 1.0, erases=True),
}
_PAIRS = (("ben", "blue"), ("anna", "red"), ("ben", "green"))
NAMES = tuple(dict.fromkeys(name for name, _ in _PAIRS))
OPENING = NAMES.index("ben")


@dataclass(frozen=True, eq=False)
class Recalled:
    """The toy's run on the text with a question about one name, by its place in `NAMES`."""

    scene: Scene
    name: int

    @property
    def text(self) -> str:
        """The toy's input."""
        pairs = " , ".join(map(" ".join, _PAIRS))
        return f"{pairs} . {NAMES[self.name]} ?"

    @once
    def trace(self) -> Trace:
        """The toy's run."""
        return self.scene.run(MODEL, self.text)

    @property
    def words(self) -> tuple[str, ...]:
        """The toy's tokens."""
        return self.trace.query_tokens(STREAM).written

    @property
    def colours(self) -> dict[str, int]:
        """Each colour's position."""
        return {colour: self.words.index(colour) for _, colour in _PAIRS}

    @property
    def own(self) -> tuple[str, ...]:
        """The colours of the name, the latest last."""
        return tuple(colour for name, colour in _PAIRS if name == NAMES[self.name])

    @once
    def place(self) -> tuple[int, int]:
        """The head (layer, head) with the largest weight for the latest colour of the name that has two."""
        if self.name != OPENING:
            return Recalled(self.scene, OPENING).place
        key = self.colours[self.own[-1]]
        sizes = {
            (layer, head): abs(float(self.trace.weights(layer, head, STREAM)[-1, key]))
            for layer in self.trace.layer_numbers(STREAM)
            for head in range(self.trace.head_count(layer, STREAM))
        }
        return max(sizes, key=sizes.__getitem__)

    @property
    def head(self) -> TokenMixer:
        """That head's call."""
        layer, head = self.place
        call = self.trace.attention(layer, STREAM)
        assert isinstance(call, TokenMixer)  # the stream of layers without a softmax
        return call.head(head)

    def by_rule(self, rule: str) -> TokenMixer:
        """Return the head by a rule of `RULES`, with its queries, keys and decay."""
        _, part, erases = RULES[rule]
        assert self.head.write is not None  # a delta rule has a β
        return replace(self.head, write=part * self.head.write, kind=self.head.kind if erases else "SSD")

    def row(self, rule: str) -> Float[Tensor, " word"]:
        """Return the question's weights by a rule."""
        return self.by_rule(rule).weights[-1]

    def got(self, rule: str, colours: Sequence[str] = ()) -> list[float]:
        """Return the question's weight for each colour, or for some."""
        row, places = self.row(rule), self.colours
        return [float(row[places[colour]]) for colour in colours or places]

    def alike(self, one: str, other: str) -> float:
        """Return the cosine of the keys that two colours are written to."""
        first, second = (self.head.key[self.colours[colour]] for colour in (one, other))
        return float(functional.cosine_similarity(first, second, dim=0))
