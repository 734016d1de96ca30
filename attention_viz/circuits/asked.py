"""The numbers that can be decomposed or measured: scores, logits, probabilities and output directions."""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Asked", "Direction", "Logit", "Probability", "Score"]


@dataclass(frozen=True)
class Score:
    """How well a key fits a query in one head: query · key × scale, before any soft cap, position bias or mask.

    Attributes:
        layer: layer number, counted as the model counts.
        head: from 0.
        query: position of the query.
        key: position of the key.
        stream: the layer's stream; None if the model has only one.
        relative: subtract the mean score of the other keys that the query may attend to, which removes the part that
            all keys share.
    """

    layer: int
    head: int
    query: int
    key: int
    stream: str | None = None
    relative: bool = False

    def __str__(self) -> str:
        """Describe the score in words."""
        beside = ", less the mean of the other keys" if self.relative else ""
        return f"score of query {self.query} and key {self.key} in layer {self.layer}, head {self.head}{beside}"


@dataclass(frozen=True)
class Logit:
    """A token's logit, or its difference from another token's logit.

    Attributes:
        token: token id or text.
        position: row of the output; negative numbers count from the end.
        against: id or text of the token whose logit is subtracted.
    """

    token: int | str
    position: int = -1
    against: int | str | None = None

    def __str__(self) -> str:
        """Describe the logit in words."""
        beside = "" if self.against is None else f" less that of {self.against!r}"
        return f"logit of {self.token!r}{beside} at position {self.position}"


@dataclass(frozen=True)
class Probability:
    """A token's probability, from 0 to 1: the softmax over the whole vocabulary.

    A shift of all logits doesn't change it. Near 0 and 1 it hardly moves even if the `Logit` does.

    Attributes:
        token: token id or text.
        position: row of the output; negative numbers count from the end.
    """

    token: int | str
    position: int = -1

    def __str__(self) -> str:
        """Describe the probability in words."""
        return f"probability of {self.token!r} at position {self.position}"


@dataclass(frozen=True, eq=False)
class Direction:
    """The output's component along a direction: output · vector.

    Attributes:
        vector: (width,), as wide as a row of the output.
        position: row of the output; None averages all rows that aren't padding, as text embedders do.
    """

    vector: Tensor
    position: int | None = -1

    def __str__(self) -> str:
        """Describe the direction in words."""
        where = "the mean over all positions" if self.position is None else f"position {self.position}"
        return f"output at {where} in a given direction"


Asked = Score | Logit | Direction
