"""The probability that each token of a text had, by the model's own logits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.analysis.measured import continues_text, word_stream
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.inputs.vocabulary import number_of
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.provenance import MERGED
from attention_viz.trace.slots import has_target, target_stream
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind, by_row

if TYPE_CHECKING:
    import pandas
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

# Logits that become probabilities at a time: 32 MiB in float64.
_AT_ONCE = 2**22


def chances(
    no_words: str, tokenizer: "PreTrainedTokenizerBase | None", trace: Trace, start: int | None
) -> "pandas.DataFrame":
    """Return the probability and rank of each token; see `AttentionModel.chances`.

    Args:
        no_words: why the output has no numbers per token; empty if it has.
    """
    import pandas

    tokens, places = _predicted(trace, no_words, start)
    ids = _ids(trace, tokenizer, tokens, [place for place, _ in places])
    found = [one for part in _parts(trace, ids, [row for _, row in places]) for one in part]
    return pandas.DataFrame(
        {
            "position": [place for place, _ in places],
            "token": [tokens.labels[place] for place, _ in places],
            "id": ids,
            "probability": [probability for probability, _ in found],
            "rank": [rank for _, rank in found],
            "written": [tokens.written[place] for place, _ in places],
        }
    )


def _predicted(trace: Trace, no_words: str, start: int | None) -> tuple[Tokens, list[tuple[int, int]]]:
    """Return the tokens, and each predicted one's position with the row that predicts it."""
    origin = trace.provenance
    if no_words:
        raise UnsupportedModel(f"{origin.model} has no unembedding, so it predicts no tokens: {no_words}")
    if MERGED in origin.edits:
        raise TraceError("a word of several tokens has no probability of its own; use the trace before merge_words")
    streams, writes = trace.attention_streams, has_target(trace.attention_streams)
    crossing = writes and target_stream(streams) == "cross"
    if not writes and not continues_text(trace) and not origin.generated:
        raise UnsupportedModel(
            f"{origin.model} isn't a decoder: its tokens see later ones, so none is predicted from those before it. "
            "Use model.probability at a mask"
        )
    tokens = trace.query_tokens(target_stream(streams) if writes else word_stream(trace))
    if not writes and len(tokens) != len(trace.key_tokens(word_stream(trace))):
        raise TraceError(f"the trace keeps only the last {len(tokens)} rows; trace the text without queries=")
    rows, width = trace.output_shape
    if not width:
        raise TraceError("the trace has weights alone, without logits, so no token has a probability")
    if rows != len(tokens):
        raise TraceError(f"the trace has {rows} rows of output for {len(tokens)} tokens; use the model's own trace")
    # A row of an encoder–decoder's cross-attention is labelled with the token that it predicts.
    first = 0 if crossing else 1
    if start is None:
        start = max(first, len(tokens) - origin.generated) if origin.generated else first
    if not is_whole(start) or not first <= start <= len(tokens):
        raise ShapeError(f"start must be a position from {first} to {len(tokens)}; got {start!r}")
    places = [(place, place - first) for place in range(int(start), len(tokens))]
    # A patch, and a placeholder for one, isn't predicted.
    words = {at for at in _words(tokens) if tokens.regions[at] is None and not tokens.padding[at]}
    return tokens, [(place, row) for place, row in places if place in words and not tokens.padding[row]]


def _words(tokens: Tokens) -> list[int]:
    """Return the positions of tokens without a place in an image or audio."""
    return [at for at, place in enumerate(tokens.place) if place is None]


def _ids(trace: Trace, tokenizer: "PreTrainedTokenizerBase | None", tokens: Tokens, places: Sequence[int]) -> list[int]:
    """Return the tokens' ids; beside an image only the run or the tokenizer knows them."""
    if tokens.ids is not None:
        return [tokens.ids[place] for place in places]
    read = getattr(behind(trace).run, "inputs", {}).get("input_ids")
    # Some models put the patches before the ids, others read them in the place of placeholders' ids.
    for read_at in (range(len(tokens)), _words(tokens)):
        if read is not None and read.shape == (1, len(read_at)):
            number = dict(zip(read_at, read[0].tolist(), strict=True))
            return [number[place] for place in places]
    found = [None if tokenizer is None else number_of(tokenizer, tokens.labels[place]) for place in places]
    if (unknown := next((at for at, one in zip(places, found, strict=True) if one is None), None)) is not None:
        raise TraceError(f"the id of {tokens.labels[unknown]!r} isn't in the trace; run the model again")
    return [one for one in found if one is not None]


def _parts(trace: Trace, ids: Sequence[int], rows: Sequence[int]) -> list[list[tuple[float, int]]]:
    """Return probabilities and ranks, some rows at a time."""
    output, size = by_row(trace), max(1, _AT_ONCE // max(1, trace.output_shape[1]))
    found = list[list[tuple[float, int]]]()
    for at in range(0, len(rows), size):
        some = rows[at : at + size]
        logits = output[some[0] : some[-1] + 1][[row - some[0] for row in some]]
        found.append(_measured(logits.detach(), ids[at : at + size]))
    return found


def _measured(logits: Tensor, ids: Sequence[int]) -> list[tuple[float, int]]:
    chosen = torch.tensor(ids, device=logits.device)[:, None]
    own = logits.gather(1, chosen)
    likely = logits.double().log_softmax(dim=-1).gather(1, chosen).exp()
    ranks = (logits > own).sum(dim=-1) + 1
    return list(zip(likely[:, 0].tolist(), ranks.tolist(), strict=True))
