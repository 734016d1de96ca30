"""What a model that predicts no words refuses."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attention_viz.edits.eviction import Evict
from attention_viz.errors import UnsupportedModel
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["Wordless"]


class Wordless(ABC):
    """A model whose output is no number for each token it knows."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called, in messages."""

    def generate(
        self,
        text: str,
        tokens: int = 20,
        *,
        evict: Evict | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Iterator[Trace]:
        """Refused: this model predicts no words.

        Raises:
            UnsupportedModel: always.
        """
        raise UnsupportedModel(f"{self.name} predicts no words, so it can't go on with a text")

    def extend(self, trace: Trace, tokens: int = 1, *, evict: Evict | None = None) -> Iterator[Trace]:
        """Refused: this model predicts no words.

        Raises:
            UnsupportedModel: always.
        """
        raise UnsupportedModel(f"{self.name} predicts no words, so it can't go on from a trace")

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """Refused: this model predicts no words.

        Raises:
            UnsupportedModel: always.
        """
        raise UnsupportedModel(f"{self.name} has no head that chooses tokens")
