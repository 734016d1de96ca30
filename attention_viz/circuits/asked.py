"""The numbers that can be opened: scores, logits, output directions.

A token's probability needs whole runs: no sum of parts makes it.
"""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Asked", "Direction", "Logit", "Probability", "Score"]


@dataclass(frozen=True)
class Score:
    """How well a key fits a query in one head: query · key × scale, before any soft cap, position bias and mask.

    Attributes:
        layer: its number, the model's own.
        head: from 0.
        query: the position that looks.
        key: the position that is looked at.
        stream: whose layer; None for the only one there is.
        relative: the score less the mean score of the other keys that the query may look at. What all keys share
            drops out, and what makes this key stand out is left.
    """

    layer: int
    head: int
    query: int
    key: int
    stream: str | None = None
    relative: bool = False

    def __str__(self) -> str:
        """In words."""
        beside = ", less the mean of the other keys" if self.relative else ""
        return f"score of query {self.query} and key {self.key} in layer {self.layer}, head {self.head}{beside}"


@dataclass(frozen=True)
class Logit:
    """What a model gives a token before the softmax over all tokens; or how much more than it gives another.

    Attributes:
        token: its id, or its text.
        position: the row of the output, from the end where negative.
        against: the id or the text of a token whose logit is taken away.
    """

    token: int | str
    position: int = -1
    against: int | str | None = None

    def __str__(self) -> str:
        """In words."""
        beside = "" if self.against is None else f" less that of {self.against!r}"
        return f"logit of {self.token!r}{beside} at position {self.position}"


@dataclass(frozen=True)
class Probability:
    """How likely a model takes a token to be, from 0 to 1: the softmax over all tokens that it knows.

    What changes all logits alike doesn't change it, and near 0 and 1 it hardly moves, where a `Logit` does.

    Attributes:
        token: its id, or its text.
        position: the row of the output, from the end where negative.
    """

    token: int | str
    position: int = -1

    def __str__(self) -> str:
        """In words."""
        return f"probability of {self.token!r} at position {self.position}"


@dataclass(frozen=True, eq=False)
class Direction:
    """How far a model's output goes in a direction: output · vector.

    Attributes:
        vector: (width,), as wide as a row of the output.
        position: the row of the output; None for the mean over all that aren't padding, which is how embedders make
            one vector of a text.
    """

    vector: Tensor
    position: int | None = -1

    def __str__(self) -> str:
        """In words."""
        where = "the mean over all positions" if self.position is None else f"position {self.position}"
        return f"output at {where} in a given direction"


Asked = Score | Logit | Direction
