"""The token pair that represents a head."""

import math
from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.blocks import row_slices
from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.findings.mixing import shares_of
from attention_viz.analysis.overview import overview
from attention_viz.analysis.places import patches_beside_words
from attention_viz.analysis.signed import mixer_of
from attention_viz.analysis.words import Words, words_of
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.trace.kind import stream_kind
from attention_viz.trace.slots import are_alike
from attention_viz.trace.trace import Trace

# Of more weights than this the largest is looked for in a map of blocks first; how far that may be from the weights,
# as a part of them.
MANY_WEIGHTS, _ROUNDED = 2**22, 1e-5
# Of a layer with a matrix per channel, so many weights in all channels at most; of more, a part of the rows.
_MANY_IN_CHANNELS = 2**28


def link_of(trace: Trace, stream: str, layer: int, head: int, findings: Sequence[Finding] = ()) -> tuple[int, int]:
    """Return the query and key of a head's finding, else its strongest link between words, if any.

    Without a softmax, that is the largest share of size off the diagonal; of a layer with a matrix per channel, of what
    arrives in all of them.
    """
    for one in findings:
        if (one.stream, one.layer, one.head) == (stream, layer, head):
            return one.query, one.key
    queries, keys = words_of(trace.query_tokens(stream)), words_of(trace.key_tokens(stream))
    # Early rows have much on the first key because they have few others.
    pictured = patches_beside_words(queries.tokens)
    silent = (
        _silent(queries, pictured),
        _silent(keys, [0] if stream_kind(stream) == "decoder" or stream in trace.mixers else ()),
    )
    apart = are_alike(stream, queries.tokens, keys.tokens) and len(queries.tokens) > 1
    if stream in trace.mixers:
        found = _strongest_share(trace, (stream, layer, head), *silent, apart=apart)
        return found[1:] if found[0] >= 0 else (_first_plain(queries), _first_plain(keys))
    try:
        call = trace.attention(layer, stream).head(head)
    except AttentionVizError:
        # A reading has weights and no call that they came from.
        call = None
    if call is not None and math.prod(call.shape) > MANY_WEIGHTS:
        found = _strongest_of_many(call, *silent, apart=apart)
    else:
        weights = trace.weights(layer, head, stream) if call is None else call.weights
        found = _strongest(weights, range(len(weights)), *silent, apart=apart)
    return found[1:] if found[0] >= 0 else (_first_plain(queries), _first_plain(keys))


def _silent(words: Words, more: Collection[int] = ()) -> list[int]:
    silent = set((~words.carrying).nonzero()[:, 0].tolist()) | set(more)
    return sorted(silent) if len(silent) < len(words.of_position) else []


def _strongest(
    weights: Float[Tensor, "row key"], rows: range, silent_rows: list[int], silent_keys: list[int], *, apart: bool
) -> tuple[float, int, int]:
    """The largest weight, query and key, first of equals; below 0 for none."""
    weights = weights.detach().nan_to_num(0)
    if apart:
        weights[list(range(len(rows))), list(rows)] = -1
    weights[[rows.index(row) for row in silent_rows if row in rows]] = -1
    weights[:, silent_keys] = -1
    row, key = divmod(int(weights.argmax()), weights.shape[1])
    return float(weights[row, key]), rows[row], key


def _strongest_share(
    trace: Trace, place: tuple[str, int, int], silent_rows: list[int], silent_keys: list[int], *, apart: bool
) -> tuple[float, int, int]:
    """The largest share of size, query and key, from as many rows as time allows."""
    stream, layer, head = place
    mixer = mixer_of(trace, stream, layer)
    channels, queries, keys = mixer.shape
    most = _MANY_IN_CHANNELS // (channels * keys) if mixer.per == "channel" else queries
    best = (-1.0, 0, 0)
    for part in row_slices(queries, keys):
        rows = range(queries)[part]
        rows = rows[:: max(1, -(-queries // max(1, most)))]
        shares = shares_of(trace, stream, layer, head, rows).detach().float().cpu()
        found = _strongest(shares, rows, silent_rows, silent_keys, apart=apart)
        best = max(best, found, key=lambda one: one[0])
    return best


def _strongest_of_many(
    call: Attention, silent_rows: list[int], silent_keys: list[int], *, apart: bool
) -> tuple[float, int, int]:
    """Searches only the heaviest blocks."""
    queries, keys = call.shape
    # Key by key, as the map is made.
    hidden = torch.zeros(keys, queries, dtype=torch.bool, device=call.query.device)
    hidden[silent_keys] = True
    hidden[:, silent_rows] = True
    if apart:
        hidden.fill_diagonal_(True)
    best = (-1.0, 0, 0)
    for rows in _rows_of_largest(call, hidden.T):
        weights = call.rows(slice(rows.start, rows.stop)).weights
        best = max(best, _strongest(weights, rows, silent_rows, silent_keys, apart=apart), key=lambda one: one[0])
    return best


def _rows_of_largest(call: Attention, hidden: Bool[Tensor, "query key"]) -> list[range]:
    queries, keys = call.shape
    try:
        found = overview(call, hidden=hidden)
    except TraceError:
        # Some weights are no numbers, which count as 0: all rows are gone through.
        return [range(queries)[rows] for rows in row_slices(queries, keys)]
    assert found.shown is not None
    # A block's largest is the weight itself but for rounding.
    near = (found.shown >= found.shown.max() * (1 - _ROUNDED)).any(axis=1).nonzero()[0].tolist()
    return [range(queries)[block * found.size[0] : (block + 1) * found.size[0]] for block in near]


def _first_plain(words: Words) -> int:
    mute = words.are("special", "padding")
    return next((place for place, word in enumerate(words.of_position) if not mute[word]), 0)
