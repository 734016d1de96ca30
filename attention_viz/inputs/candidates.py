"""The likeliest tokens at a position: what a decoder would say next, or what an encoder guesses behind a mask."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, UnsupportedModel, UnusableText
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.token_of import token_of
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["candidates", "probability"]


def candidates(
    no_words: str, tokenizer: "PreTrainedTokenizerBase | None", trace: Trace, position: int, count: int
) -> "pandas.DataFrame":
    """The likeliest tokens at a position of a trace: columns token, id, probability, written, likeliest first.

    `written` is the token as people read it, such as "·Paris" for "ĠParis".

    Probabilities are the softmax over all tokens that the model knows.

    Args:
        no_words: why the model's output tells no token; empty if it does.
    """
    import pandas

    if count < 1:
        raise ShapeError(f"{count} candidates were asked for; it has to be 1 or more")
    likely, ids = _likely(no_words, tokenizer, trace, position).topk(min(count, trace.output_shape[1]))
    numbers = [int(number) for number in ids]
    tokens, found = label_ids(tokenizer, numbers), likely.to(torch.float32).cpu().numpy()
    columns = {"token": tokens.labels, "id": numbers, "probability": found, "written": tokens.written}
    return pandas.DataFrame(columns)


def probability(
    no_words: str,
    tokenizer: "PreTrainedTokenizerBase | None",
    trace: Trace,
    token: int | str,
    position: int,
) -> float:
    """How likely the model takes one token to be at a position of a trace, from 0 to 1; errors as of `candidates`."""
    likely = _likely(no_words, tokenizer, trace, position)
    return float(likely[token_of(trace.provenance.model, tokenizer, trace.output_at(position).float(), token)])


def _likely(no_words: str, tokenizer: "PreTrainedTokenizerBase | None", trace: Trace, position: int) -> Tensor:
    """The probability of every token at a position, in float64."""
    if no_words:
        raise UnsupportedModel(
            f"{trace.provenance.model} has no head that chooses tokens, so it predicts nothing: {no_words}"
        )
    positions = trace.output_shape[0]
    if not -positions <= position < positions:
        raise ShapeError(f"position {position} was asked for; the text has positions {-positions} to {positions - 1}")
    tokens = trace.query_tokens(trace.streams[-1])
    if len(tokens) == positions and tokens.padding[position]:
        raise ShapeError(f"position {position} is padding; ask for one of the text's own")
    if trace.streams == ("encoder",):
        _check_masked(trace, tokenizer, position)
    return trace.output_at(position).double().softmax(dim=-1)


def _check_masked(trace: Trace, tokenizer: "PreTrainedTokenizerBase | None", position: int) -> None:
    """At any other place an encoder sees the token itself, and guessing it is no prediction."""
    mask = None if tokenizer is None else tokenizer.mask_token_id
    tokens = trace.query_tokens()
    if mask is None or tokens.numbers[position] != mask:
        sign = "a mask token" if tokenizer is None or mask is None else str(tokenizer.mask_token)
        raise UnusableText(
            f"{trace.provenance.model} guesses what stands behind {sign}; at position {position} it can see the token "
            f"{tokens.written[position]!r} itself"
        )
