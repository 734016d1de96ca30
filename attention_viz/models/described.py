"""Describe a pretrained model by its parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.inputs.media.readers import Reader
from attention_viz.models.parts import ModelParts
from attention_viz.protocol.facts import ModelFacts
from attention_viz.protocol.model import Model
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.runner import Runner
from attention_viz.recording.weights.stored import bytes_in_memory
from attention_viz.trace.kind import InputKind
from attention_viz.trace.trace import Provenance

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["DescribedModel"]


@dataclass(frozen=True, eq=False, repr=False)
class DescribedModel(Model):
    """A pretrained model's name, parts and facts."""

    _parts: ModelParts

    @property
    def name(self) -> str:
        """The name it was loaded by."""
        return self._parts.name

    @property
    def limit(self) -> int | None:
        """Largest number of tokens per input; None if unknown."""
        return self._parts.inputs.limit

    @property
    def facts(self) -> ModelFacts:
        """The model's properties and abilities."""
        return self._parts.facts

    @property
    def hf_model(self) -> "PreTrainedModel":
        """The Transformers model itself."""
        return self._parts.inputs.model

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase | None":
        """The tokenizer; None if there is none."""
        return self._parts.tokenizer

    @property
    def reader(self) -> Reader | None:
        """Turns an image or audio into tensors; None for a text model."""
        return self._parts.reader

    @property
    def why_alone(self) -> str:
        """Why it can't read an image or audio beside the text; empty if nothing prevents it."""
        return self.facts.why_alone

    @property
    def origin(self) -> Provenance:
        """The provenance of its traces, without a text."""
        return self._parts.provenance

    @property
    def anatomy(self) -> Anatomy:
        """The structure that a trial run found during wrapping."""
        return self._parts.tracer.anatomy

    @property
    def runner(self) -> Runner:
        """Runs every forward pass."""
        return self._parts.tracer.runner

    @property
    def nbytes(self) -> int:
        """Bytes of its parameters and buffers in memory, without those on a disk."""
        return bytes_in_memory(self.hf_model)

    @property
    def mask_id(self) -> int | None:
        """The mask token's id; None if it has none."""
        return getattr(self.tokenizer, "mask_token_id", None)

    @property
    def heads(self) -> Mapping[str, tuple[int, ...]]:
        """The number of heads per attention layer for each stream, in the order of `layer_numbers`."""
        return self.facts.heads

    @property
    def fills_up(self) -> bool:
        """Whether texts of different length can run in one pass: the model has one stream and takes a mask."""
        return len(self.anatomy.layers) == 1 and "attention_mask" in self.runner.named

    @property
    def _reads_beside(self) -> bool:
        return self.facts.reads is InputKind.BESIDE
