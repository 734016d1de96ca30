"""A pretrained model's predictions: likely tokens, their probabilities, and tokens that something else generated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.chances import chances
from attention_viz.inputs.vocabulary import candidates, probability
from attention_viz.models.described import DescribedModel
from attention_viz.models.following import follow
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["PredictingModel"]


@dataclass(frozen=True, eq=False, repr=False)
class PredictingModel(DescribedModel):
    """A pretrained model that predicts tokens, if it has an unembedding."""

    def candidates(self, trace: Trace, position: int = -1, count: int = 10) -> "pandas.DataFrame":
        """Return the likeliest tokens at a position of this model's trace: columns token, id, probability, written.

        For a decoder this is the next token; for an encoder it is the masked one, so the position must be a mask.

        Raises:
            UnsupportedModel: the model has no unembedding, or the trace is another model's.
            ShapeError: the position doesn't exist or is padding, or `count` is below 1.
            UnusableText: an encoder's position isn't a mask.
        """
        self._check_own(trace)
        return candidates(self.anatomy.no_words, self.tokenizer, trace, position, count)

    def probability(self, trace: Trace, token: int | str, position: int = -1) -> float:
        """Return a token's probability, from 0 to 1: the next token after a position, or the masked one there.

        Args:
            trace: from this model; a trace from a file works.
            token: token id or text, such as " Mary".
            position: counted from the end if negative.

        Raises:
            UnsupportedModel: the model has no unembedding, or the trace is another model's.
            ShapeError: the position or id doesn't exist, or the position is padding.
            UnusableText: the text isn't exactly one token, or an encoder's position isn't a mask.
        """
        self._check_own(trace)
        return probability(self.anatomy.no_words, self.tokenizer, trace, token, position)

    def chances(self, trace: Trace, start: int | None = None) -> "pandas.DataFrame":
        """Return how likely the model found each token: columns position, token, id, probability, rank, written.

        The probability is the model's own, from the logits after the tokens before: no temperature or `top_p` changes
        it. Rank 1 is the likeliest token. A decoder's first token, padding and placeholders for images have no row. For
        an encoder–decoder, these are the tokens that its decoder outputs.

        Args:
            trace: from this model; a trace from a file works.
            start: the first position to return. By default the first token that was generated or passed to `follow`;
                without such tokens, all.

        Raises:
            UnsupportedModel: the model has no unembedding or isn't a decoder, or the trace is another model's.
            ShapeError: no token is predicted at `start`.
            TraceError: the trace's words were merged, or it is the trace of some tokens only.
        """
        self._check_own(trace)
        return chances(self.anatomy.no_words, self.tokenizer, trace, start)

    def follow(
        self,
        ids: Tensor | Sequence[int],
        *,
        prompt: int,
        attention_mask: Tensor | None = None,
        **tensors: Tensor,
    ) -> Trace:
        """Trace ids that something else generated, such as a beam search or a server, in one run of the whole.

        The trace marks the tokens after the prompt as generated, as `generate` does, and `chances` returns the
        probability of each: `model.follow(model.hf_model.generate(**inputs, num_beams=4), prompt=n)`.

        Args:
            ids: one row, (1, n), or a list or tuple of n integers: the prompt, then the generated tokens.
            prompt: how many of them are the prompt.
            attention_mask: (1, n), or (1, prompt) for the prompt alone, as in `trace_ids`.
            tensors: for a model that reads text with images, what its processor made of the prompt, such as
                `pixel_values`.

        Raises:
            ShapeError: not exactly one row, no integers, `prompt` isn't from 1 to n, or tensors don't fit.
            TextTooLong: more tokens than the model has positions.
            UnsupportedModel: the model isn't a decoder with an unembedding.
            UnusableText: the model knows no such ids, or an id after the prompt is a placeholder for an image.
        """
        return follow(self._parts, ids, prompt, attention_mask, tensors)

    def _check_own(self, trace: Trace) -> None:
        if trace.provenance.model != self.name:
            raise UnsupportedModel(f"{self.name} accepts only its own traces; got one of {trace.provenance.model}")
