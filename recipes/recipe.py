"""What a recipe is: data, not a class to inherit from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from torch import Tensor
from transformers.modeling_utils import PreTrainedModel
from transformers.processing_utils import ProcessorMixin
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

__all__ = ["Figures", "Recipe", "Snapshot", "Trained"]

# What was measured, by name; a card is filled in from it and from nothing else.
Figures: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class Snapshot:
    """A model at one moment of its training, and what it could do then."""

    step: int
    figures: Figures
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Trained:
    """What came of a training run.

    Attributes:
        processor: prepares a text with its image, for a model that reads both.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    processor: ProcessorMixin | None = None


class Train(Protocol):
    """Trains from a seed; `stop` ends it after a few steps, which is enough to see that it is reproducible."""

    def __call__(self, seed: int, stop: int | None = None) -> Trained:
        """Train."""
        ...


@dataclass(frozen=True)
class Recipe:
    """How one model is made.

    Attributes:
        seed: what all chance in it comes from.
        measure: what the model can do on examples it never saw, and which heads do it.
        card: the model card, with the names of figures in braces.
    """

    seed: int
    train: Train
    measure: Callable[[PreTrainedModel, PreTrainedTokenizerFast], Figures]
    card: str
