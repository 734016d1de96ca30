"""What a model would choose at a position of one of its traces."""

from abc import ABC
from typing import TYPE_CHECKING

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.candidates import candidates, probability
from attention_viz.recording.probe import Anatomy
from attention_viz.recording.tracer import Tracer
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Choosing"]


class Choosing(ABC):
    """A model that may have a head that chooses tokens."""

    name: str
    _tracer: Tracer
    tokenizer: "PreTrainedTokenizerBase | None"

    @property
    def anatomy(self) -> Anatomy:
        """What was learnt of it when it was wrapped."""
        return self._tracer.anatomy

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """The likeliest tokens at a position of a trace of this model: columns token, id, probability, written.

        For a decoder the token after the position; for an encoder the one behind a mask, so only there.

        Raises:
            UnsupportedModel: the model has no head that chooses tokens, or the trace is another's.
            ShapeError: there is no such position, it is padding, or fewer than 1 were asked for.
            UnusableText: an encoder was asked where its text has no mask.
        """
        if trace.provenance.model != self.name:
            raise UnsupportedModel(f"a trace of {trace.provenance.model} was given; {self.name} knows only its own")
        return candidates(self.anatomy.no_words, self.tokenizer, trace, position, count)

    def probability(self, trace: Trace, token: int | str, position: int = -1) -> float:
        """How likely this model takes a token to be at a position of its trace, from 0 to 1: the next, or a masked one.

        Args:
            trace: of this model; one from a file will do.
            token: its id or its text, such as " Mary".
            position: from the end where negative.

        Raises:
            UnsupportedModel: the model has no head that chooses tokens, or the trace is another's.
            ShapeError: there is no such position or id, or the position is padding.
            UnusableText: the text is no token, or several; or an encoder was asked where its text has no mask.
        """
        if trace.provenance.model != self.name:
            raise UnsupportedModel(f"a trace of {trace.provenance.model} was given; {self.name} knows only its own")
        return probability(self.anatomy.no_words, self.tokenizer, trace, token, position)
