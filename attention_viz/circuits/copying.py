"""Find heads that would copy the token that they attend to."""

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
    """Measure how far each head would raise the logit of the token that it attends to, within texts.

    If a head attended to one token alone, it would write that token's value times W_O, the last norm's gain and W_U to
    the logits. z is how many standard deviations the token's own logit is above the mean of all logits; 0
    means no preference. The deviation over the vocabulary comes from W_U's covariance, without computing each logit.
    Attention patterns play no part. A head that copies and attends to the token after an earlier occurrence is an
    induction head.

    Special tokens, padding and a decoder's first token (an attention sink) aren't counted.

    Args:
        model: from `load` or `wrap`; it must have an unembedding.
        texts: read one by one; none is kept.
        stream: the heads' stream; None if the model has only one.

    Returns:
        Index (layer, head); columns z, the mean over all counted tokens, and n, their number.

    Raises:
        UnsupportedModel: the model is one of our own modules, or its heads write to the logits through more than W_O, a
            norm and W_U.
        UnusableText: `texts` is a single string, a text can't be read, or no token counts.
        TextTooLong: a text has more tokens than the model has positions.
        ShapeError: the stream doesn't exist, or it is missing and the model has several.
    """
    import pandas

    if isinstance(texts, str):
        raise UnusableText("texts is a single str; pass a list of texts")
    known = proven(model, stream)
    lacking = known.lacking("output") or known.lacking_words()
    if lacking is not None:
        raise UnsupportedModel(f"can't measure copying in {known.name}: {lacking}")
    count, total = 0, torch.zeros(sum(around.heads for around in known.layers), dtype=torch.float64)
    for text in texts:
        trace = model.trace(text)
        tokens = trace.key_tokens(known.stream)
        counts = _counts(tokens, first=known.stream != "decoder")
        count += int(counts.sum())
        total += _scores(known, trace, torch.tensor(tokens.numbers), counts).sum(dim=1).double().cpu()
    if not count:
        raise UnusableText(
            "no token of the texts counts, since special tokens and a decoder's first one don't; give longer texts"
        )
    index = pandas.MultiIndex.from_tuples(known.heads, names=["layer", "head"])
    return pandas.DataFrame({"z": (total / count).tolist(), "n": count}, index=index)


def _counts(tokens: Tokens, *, first: bool) -> Bool[Tensor, " position"]:
    """Mark the tokens that count: not special, not padding, the first only if asked."""
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
        value = trace.attention(layer, known.stream).value
        value = value[:, counts.to(value.device)].to(around.output.device).float()
        value = value.repeat_interleave(around.heads // len(value), dim=0)
        written = value @ around.output
        spread = ((written @ words.covariance) * written).sum(dim=-1).sqrt()
        found.append((written * towards.T).sum(dim=-1) / spread)
    return torch.cat(found)
