"""The field's standard test of induction: what a model does with random tokens that are said twice."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.repeated import random_twice
from attention_viz.protocol.facts import ModelFacts
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Repeating"]


class Repeating(ABC):
    """A model that can be given random tokens."""

    name: str
    limit: int | None
    facts: ModelFacts
    hf_model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase | None"

    @abstractmethod
    def trace_ids(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Trace:
        """The trace of a row of ids."""

    def repeated_random(self, tokens: int | None = None, seed: int = 0) -> Trace:
        """Run different random tokens twice, one copy after the other: the standard test of induction.

        A token of the second copy tells nothing of the next by itself, and no text that the model has read does: only
        looking back to what followed it in the first copy helps, which induction heads do. The metric `induction` of
        this trace is that test's score. Source: Olsson et al. 2022, "In-context Learning and Induction Heads", where
        the tokens are said more often, and the most and least common ones are left out.

        Args:
            tokens: how many are said twice; 50 by default, fewer where the model knows or reads fewer.
            seed: which ones; the same seed gives the same tokens.

        Returns:
            A trace like any other, of 2 · tokens and what the tokenizer puts around every text.

        Raises:
            UnsupportedModel: an encoder–decoder, whose decoder would read something else.
            ShapeError: fewer than 2 tokens were asked for, or more than the model knows or can read twice.
            UnusableText: the model knows fewer than 2 tokens that are words, or pieces of words.
        """
        if self.facts.is_encoder_decoder:
            raise UnsupportedModel(
                f"random tokens are said twice in one text, and {self.name} reads one text and says another; needed: "
                "an encoder or a decoder"
            )
        ids = random_twice(self.name, self.hf_model, self.tokenizer, self.limit, tokens, seed)
        return self.trace_ids(ids, torch.ones_like(ids))
