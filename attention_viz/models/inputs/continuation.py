"""A text that a decoder goes on with, token by token."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch

from attention_viz.models.inputs.check import Inputs
from attention_viz.models.inputs.text import Reading, label_ids
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Growing"]


@dataclass(frozen=True, eq=False)
class Growing:
    """Lets one decoder go on with a text.

    Attributes:
        inputs: what the model takes.
        tokenizer: names the tokens, where there is one.
    """

    inputs: Inputs
    tokenizer: "PreTrainedTokenizerBase | None"

    def traces(self, reading: Reading, tokens: int, trace: Callable[[Reading, int], Trace]) -> Iterator[Trace]:
        """A trace of the text, then one a token more, until the model says that it is done or is full.

        Args:
            reading: the text.
            tokens: how many tokens at most.
            trace: traces a reading, at whose end the model has put that many tokens.
        """
        limit = self.inputs.limit
        for count in range(tokens + 1):
            self.inputs.check_ids(reading.tokens.ids)
            made = trace(reading, count)
            yield made
            chosen = int(made.output[-1].argmax())
            if chosen in _ends(self.inputs.model) or (limit is not None and len(reading.tokens) >= limit):
                return
            reading = _longer(reading, label_ids(self.tokenizer, [chosen]))


def _longer(reading: Reading, more: Tokens) -> Reading:
    """A reading with tokens after it, all of them to be looked at."""
    old = reading.tokens
    tokens = Tokens(
        (*old.labels, *more.labels),
        (*old.ids, *more.ids),
        words=(*old.words, *more.words),
        special=(*old.special, *more.special),
        padding=(*old.padding, *more.padding),
        sentence=(*old.sentence, *more.sentence),
        spelling=(*old.spelling, *more.spelling),
    )
    ids = torch.tensor([tokens.ids])
    return Reading(tokens, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def _ends(model: "PreTrainedModel") -> frozenset[int]:
    """The tokens by which a model says that it is done."""
    settings: Any = getattr(model, "generation_config", None)
    end_ids = getattr(settings, "eos_token_id", None)
    found = cast("list[object]", end_ids) if isinstance(end_ids, list) else [end_ids]
    return frozenset(number for number in found if isinstance(number, int))
