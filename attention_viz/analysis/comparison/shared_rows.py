"""Rows of two decoder runs that can't differ, before their texts do."""

import torch
from torch import Tensor

from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.measured import looks_back
from attention_viz.analysis.signed import mixers_of
from attention_viz.errors import TraceError
from attention_viz.trace.derived import beginning
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

# Rows on which both runs are looked at, spread over the beginning, and how far they may be apart by rounding alone.
_ROWS, _ROUNDING = 16, 1e-4


def shared_rows(one: Trace, other: Trace, queries: AlignedAxis) -> tuple[int, ...]:
    """Return places of rows that can't differ between two runs; empty if unknown.

    Decoders never look ahead, so runs of one model agree before the first differing token; checked, because two models
    may share a name. Empty for other architectures, two models, edits, readings, or equal texts.
    """
    rows = _beginning(one, other)
    pairs = enumerate(zip(queries.one, queries.other, strict=True))
    return tuple(place for place, (mine, theirs) in pairs if mine is not None and mine == theirs and mine < rows)


def _beginning(one: Trace, other: Trace) -> int:
    origins = [trace.provenance for trace in (one, other)]
    made = [(at.model, at.revision, at.sha256, at.dtype) for at in origins]
    as_it_ran = all(at.reading == "raw" and not at.edits for at in origins)
    if made[0] != made[1] or not as_it_ran:
        return 0
    if all(not at.attention_streams and all(looks_back(at, name) for name in at.mixers) for at in (one, other)):
        return _beginning_of_mixers(one, other)
    if any(at.attention_streams != ("decoder",) for at in (one, other)):
        return 0
    tokens = one.query_tokens("decoder"), other.query_tokens("decoder")
    rows = _alike(*tokens)
    if not rows or rows == max(map(len, tokens)):
        return 0
    try:
        cut = beginning(one, rows), beginning(other, rows)
    except TraceError:  # a token looks ahead
        return 0
    return rows if _equal(*cut, rows) else 0


def _beginning_of_mixers(one: Trace, other: Trace) -> int:
    """Return the rows of two runs without attention that can't differ."""
    stream = next(iter(one.mixers), "")
    if stream not in other.mixers:
        return 0
    tokens = one.query_tokens(stream), other.query_tokens(stream)
    rows = _alike(*tokens)
    if not rows or rows == max(map(len, tokens)):
        return 0
    last = [list(mixers_of(at, stream).values())[-1].head(0).rows(range(rows)).weights[:, :rows] for at in (one, other)]
    return rows if torch.allclose(last[0].double(), last[1].double(), rtol=_ROUNDING, atol=_ROUNDING) else 0


def _alike(one: Tokens, other: Tokens) -> int:
    ids = [text.ids or (None,) * len(text) for text in (one, other)]
    parts = [
        zip(numbers, text.labels, text.special, text.padding, strict=True)
        for numbers, text in zip(ids, (one, other), strict=True)
    ]
    alike = 0
    for mine, theirs in zip(*parts, strict=False):
        if mine != theirs:
            break
        alike += 1
    return alike


def _equal(one: Trace, other: Trace, rows: int) -> bool:
    """Unknown without a layer that both keep."""
    kept = sorted(set(one.layer_numbers("decoder")) & set(other.layer_numbers("decoder")))
    if not kept:
        return False
    chosen = sorted({round(at) for at in torch.linspace(0, rows - 1, min(rows, _ROWS)).tolist()})

    def weights(trace: Trace) -> Tensor:
        return trace.attention(kept[-1], "decoder").rows(chosen).weights.detach().cpu().double()

    mine, theirs = weights(one), weights(other)
    return mine.shape == theirs.shape and torch.allclose(mine, theirs, rtol=0.0, atol=_ROUNDING, equal_nan=True)
