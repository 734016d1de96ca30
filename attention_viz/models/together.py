"""Several texts read by one model, and run in one pass."""

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attention_viz.inputs.text import InputRow, read
from attention_viz.recording.batches.batched import traces_together
from attention_viz.recording.tracer import Tracer
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Provenance, Trace

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Together"]


class Together(ABC):
    """A model that runs several texts at once."""

    name: str
    tokenizer: "PreTrainedTokenizerBase | None"
    _tracer: Tracer
    _provenance: Provenance

    @property
    def origin(self) -> Provenance:
        """Where the model comes from: what each of its traces says, without a text."""
        return self._provenance

    @property
    def fills_up(self) -> bool:
        """Whether texts of different length can be run in one pass: the model has one stream and takes a mask."""
        return len(self._tracer.anatomy.layers) == 1 and "attention_mask" in self._tracer.runner.named

    def tokens_of(self, text: str) -> Tokens:
        """What the tokenizer makes of a text, special tokens included.

        Raises:
            UnusableText: there is no tokenizer, it leaves nothing of the text, or the text is none.
        """
        return read(self.name, self.tokenizer, text).tokens

    def trace_together(self, texts: Sequence[str], layers: Sequence[int] | None = None) -> list[Trace]:
        """The traces of several texts from one pass, whose rows are filled up to the longest.

        Their numbers are those of single traces, but for the last digits: batches add in another order. They have no
        output, and nothing can be asked of the model through them.

        Args:
            texts: what to read.
            layers: as in `trace`.

        Raises:
            UnsupportedModel: the model doesn't run a batch as it runs its rows.
            UnusableText: nothing to read in one of them.
        """
        return self.traces_of([(text, read(self.name, self.tokenizer, text)) for text in texts], layers)

    def traces_of(self, texts: "Sequence[tuple[str, InputRow]]", layers: Sequence[int] | None = None) -> list[Trace]:
        """As `trace_together`, of texts that were read before.

        Args:
            texts: each one, and what the tokenizer made of it.
            layers: as in `trace`.

        Raises:
            UnsupportedModel: the model doesn't run a batch as it runs its rows.
        """
        filling = None if self.tokenizer is None else self.tokenizer.pad_token_id
        return traces_together(
            self._tracer,
            [reading for _, reading in texts],
            [replace(self._provenance, text=text) for text, _ in texts],
            self._tracer.anatomy.calls_of(layers),
            filling if isinstance(filling, int) else 0,
        )
