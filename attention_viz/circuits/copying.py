"""Which heads would write again the word that they look at."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.circuits.weights import Proven, proven
from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.operation.attention import without_autocast
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["copying"]


@without_autocast()
def copying(model: "AttentionModel", texts: Iterable[str], stream: str | None = None) -> "pandas.DataFrame":
    """How far each head would raise the word that it looks at above all other words, in the midst of texts.

    Of every token the value that a head made of it there, times the head's W_O, the last norm's gain and W_U, is what a
    head that looks at nothing else writes to each word's logit. z says by how many standard deviations over all words
    the token's own logit lies above their mean: 0 where it counts like any other. The deviation is that of all words,
    by way of W_U's covariance, without a logit of each. The pattern doesn't matter here: it is told what a head would
    copy and not where it looks; one that copies, and looks at what came after the same word, is an induction head.

    Special tokens and padding aren't counted, nor is a decoder's first token, at which heads rest.

    Args:
        model: from `load` or `wrap`; one that chooses words.
        texts: what to read, one after the other; none of them is kept.
        stream: whose heads; None for the only one there is.

    Returns:
        Index (layer, head); columns z, the mean over all tokens that count, and n, how many these are.

    Raises:
        UnsupportedModel: our own module, or a model whose heads don't write to words by W_O, a norm and W_U alone.
        UnusableText: one text instead of several, one that can't be read, or none with a token that counts.
        TextTooLong: a text with more tokens than the model has positions.
        ShapeError: there is no such stream, or none was named where there are several.
    """
    import pandas

    if isinstance(texts, str):
        raise UnusableText("one text was given; needed: a list of texts, even of one")
    known = proven(model, stream)
    lacking = known.lacking("output") or known.lacking_words()
    if lacking is not None:
        raise UnsupportedModel(f"what heads of {known.name} copy isn't told: {lacking}")
    count, total = 0, torch.zeros(sum(around.heads for around in known.layers), dtype=torch.float64)
    for text in texts:
        trace = model.trace(text)
        tokens = trace.key_tokens(known.stream)
        counts = _counts(tokens, first=known.stream != "decoder")
        count += int(counts.sum())
        total += _scores(known, trace, torch.tensor(tokens.numbers), counts).sum(dim=1).double().cpu()
    if not count:
        raise UnusableText("the texts have no token that counts: special tokens and a decoder's first one don't")
    index = pandas.MultiIndex.from_tuples(known.heads, names=["layer", "head"])
    return pandas.DataFrame({"z": (total / count).tolist(), "n": count}, index=index)


def _counts(tokens: Tokens, *, first: bool) -> Bool[Tensor, " position"]:
    """Mark the tokens that count: no special ones, no padding, the first only on request."""
    counts = ~torch.tensor(tokens.special) & ~torch.tensor(tokens.padding)
    counts[0] &= first
    return counts


def _scores(
    known: Proven, trace: Trace, ids: Tensor, counts: Bool[Tensor, " position"]
) -> Float[Tensor, "head counted"]:
    words = known.words
    towards = words.towards(ids[counts]) - words.mean[:, None]
    found: list[Tensor] = []
    for layer, around in zip(known.numbers, known.layers, strict=True):
        assert around.output is not None
        value = trace.attention(layer, known.stream).value[:, counts].float()
        value = value.repeat_interleave(around.heads // len(value), dim=0)
        written = value @ around.output
        spread = ((written @ words.covariance) * written).sum(dim=-1).sqrt()
        found.append((written * towards.T).sum(dim=-1) / spread)
    return torch.cat(found)
