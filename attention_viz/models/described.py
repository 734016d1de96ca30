"""What a model says of itself, by the names that its users know."""

from collections.abc import Mapping
from dataclasses import dataclass

from attention_viz.scratch.facts import ModelFacts

__all__ = ["Described"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    """A model that knows its facts.

    Attributes:
        facts: what it is and can do.
    """

    facts: ModelFacts

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention its traces have.

        ("encoder",) where tokens see the whole text, ("decoder",) where they see only what came before, ("encoder",
        "decoder", "cross") where it reads one text and says another.
        """
        return self.facts.streams

    @property
    def stream(self) -> str:
        """The first of its streams; most models have but one."""
        return self.streams[0]

    @property
    def answers(self) -> bool:
        """Whether it is an encoder–decoder."""
        return self.facts.is_encoder_decoder

    @property
    def predicts(self) -> bool:
        """Whether its output tells how likely each token is: the next one, or the one behind a mask."""
        return self.facts.predicts

    @property
    def heads(self) -> Mapping[str, tuple[int, ...]]:
        """Of each stream, how many heads each layer has."""
        return self.facts.heads

    @property
    def layer_count(self) -> int:
        """How many layers its first stream has."""
        return len(self.heads[self.stream])

    @property
    def layers_without_attention(self) -> tuple[str, ...]:
        """The model's own numbers of those layers that do something else instead, as in hybrids."""
        return self.facts.layers_without_attention
