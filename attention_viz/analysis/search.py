"""Heads that link two words or match a detector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.head_table import together
from attention_viz.analysis.signed import mixers_of, open_cells, signed_weights
from attention_viz.errors import TraceError
from attention_viz.operation.shapes import positions
from attention_viz.operation.token_mixer import shares_of_size
from attention_viz.trace.files.arrow import PLACES, Column, described
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["DETECTORS", "Detector", "find_heads", "rank_heads"]

_COLUMNS = {
    **PLACES,
    "weight": Column("the weight from the query word to the key word, or its mean over texts", "share of the query"),
    "share": Column("in layers without a softmax, the share of the row's size", "share of size"),
    "query": Column("the position of the query word's first token, from 0"),
    "key": Column("the position of the key word's first token, from 0"),
    "spread": Column("the standard deviation of the weight over texts", "share of the query"),
    "mean_rank": Column("the mean of the ranks in the texts"),
    "texts": Column("the number of texts with both words", "texts"),
    "rank": Column("the place among all heads, from 1"),
}


@dataclass(frozen=True)
class Detector:
    """A metric to rank heads by: the higher, the better."""

    label: str
    finds: str
    metric: str


DETECTORS: dict[str, Detector] = {
    "previous": Detector(
        "Previous token", "Previous-token heads: each token attends to the one before it.", "previous"
    ),
    "next": Detector("Next token", "Next-token heads: each token attends to the one after it.", "next"),
    "self": Detector("Self", "Self heads: each token attends to itself.", "self"),
    "first": Detector(
        "First position", "Attention sinks: heads whose weight goes to the first position of the text.", "first"
    ),
    "duplicate": Detector(
        "Duplicate token",
        "Duplicate-token heads: a repeated token attends to its earlier occurrences.",
        "duplicate",
    ),
    "induction": Detector(
        "Induction",
        "Induction heads: a repeated token attends to the token that followed it last time, as if to predict it.",
        "induction",
    ),
    "special": Detector(
        "Special tokens", "Heads that attend to tokens that the tokenizer added, such as [SEP].", "special"
    ),
    "sharp": Detector("One token", "Heads whose tokens each put their weight on one token.", "confidence"),
    "broad": Detector("Many tokens", "Broad heads: each token spreads its weight over many.", "entropy"),
    "far": Detector("Far away", "Heads whose tokens attend far away, on average.", "distance"),
}


def find_heads(
    traces: "Trace | Sequence[Trace]", query: str, key: str, stream: str | None = None
) -> "pandas.DataFrame":
    """Rank all heads by the weight that one word puts on another.

    A word of several subword tokens counts as one: the mean over its tokens as queries, the sum over its tokens as keys
    (Clark et al. 2019, section 4.1). If a word occurs several times, each head counts its pair with the largest weight.

    In layers without a softmax, weights are signed and their sizes differ by head. So heads are ranked by the share of
    size: |weight| over the mean of the query's rows' Σ|A|. The column share has it, and weight stays signed.

    Args:
        traces: one text's trace, or those of several texts and one model; only texts with both words count.
        query: the word that looks, in any case; or a token as the tokenizer or the explorer writes it.
        key: the word that is looked at.
        stream: the attention type, or "mixer" for layers without a softmax; None for the only one.

    Returns:
        Columns layer, head, weight, query and key (the positions of the pair's first tokens, from 0) and rank (from 1),
        the largest weight first. For several texts: layer, head, weight (the mean), spread (standard deviation,
        population), mean_rank, texts (how many have both words) and rank, the best mean rank first.

    Raises:
        TraceError: a word or the stream is missing, several streams and none named, or traces of different models or
            heads.
    """
    if isinstance(traces, Trace):
        return described(_found(traces, query, key, stream), _COLUMNS)
    traces = together(traces, "find_heads") if traces else []
    found, missing = list["pandas.DataFrame"](), None
    for trace in traces:
        trace.stream(stream)
        try:
            found.append(_found(trace, query, key, stream))
        except TraceError as error:
            missing = error
    if not found:
        count = len(traces)
        raise TraceError(
            f"none of {count} texts has both “{query}” and “{key}”" + (f"; in the last, {missing}" if missing else "")
        )
    return described(_over_texts(found), _COLUMNS)


def rank_heads(trace: Trace, stream: str, query: int, key: int) -> list[tuple[int, int, float]]:
    """Rank heads open between two positions: (layer, head, weight), heaviest first.

    Signed weights, of layers without a softmax, are ranked by their share of size.
    """
    if stream in trace.mixers:
        return _rank_mixers(trace, stream, query, key)
    found: list[tuple[int, int, float]] = []
    for layer in trace.layer_numbers(stream):
        row = trace.attention(layer, stream).rows([query])
        positions([key], row.shape[-1], "key", row.query.device)
        weights = row.weights[:, 0, key].tolist()
        allowed = [True] if row.allowed is None else row.allowed.expand(row.shape)[:, 0, key].tolist()
        found += [(layer, head, weight) for head, weight in enumerate(weights) if allowed[head % len(allowed)]]
    return sorted(found, key=lambda one: -one[2])


def _rank_mixers(trace: Trace, stream: str, query: int, key: int) -> list[tuple[int, int, float]]:
    found: list[tuple[float, tuple[int, int, float]]] = []
    for layer, mixer in mixers_of(trace, stream).items():
        positions([key], mixer.shape[-1], "key", mixer.query.device)
        row = signed_weights(mixer, [query])[:, 0]
        if bool(open_cells(mixer, [query])[0, key]):
            shares = shares_of_size(row)[:, key].tolist()
            weights = enumerate(row[:, key].tolist())
            found += [(share, (layer, head, one)) for share, (head, one) in zip(shares, weights, strict=True)]
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


def _over_texts(found: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    import pandas

    heads = [set(zip(one["layer"], one["head"], strict=True)) for one in found]
    if any(one != heads[0] for one in heads):
        raise TraceError(f"averaging needs traces with the same heads; got {sorted({len(one) for one in found})} heads")
    by_head = pandas.concat(found).groupby(["layer", "head"])
    table = pandas.DataFrame(
        {
            "weight": by_head["weight"].mean(),
            "spread": by_head["weight"].std(ddof=0),
            **({"share": by_head["share"].mean()} if "share" in found[0] else {}),
            "mean_rank": by_head["rank"].mean(),
            "texts": len(found),
        }
    ).reset_index()
    by = "share" if "share" in table else "weight"
    table = table.sort_values(["mean_rank", by], ascending=[True, False], ignore_index=True)
    return table.assign(rank=range(1, len(table) + 1))


def _found(trace: Trace, query: str, key: str, stream: str | None) -> "pandas.DataFrame":
    import pandas

    stream = trace.stream(stream)
    queries = trace.query_tokens(stream).places(query)
    keys = trace.key_tokens(stream).places(key)
    # Of a long text only the rows of the word that is looking are computed.
    rows = sorted({place for pieces in queries for place in pieces})
    among = [tuple(rows.index(place) for place in pieces) for pieces in queries]
    looking = _shares(among, len(rows), mean=True)
    looked_at = _shares(keys, len(trace.key_tokens(stream)), mean=False)
    found: list[tuple[int, int, float, float, int, int]] = []
    mixers = mixers_of(trace, stream) if stream in trace.mixers else {}
    for layer in trace.layer_numbers(stream):
        mixer = mixers.get(layer)
        weights = trace.attention(layer, stream).rows(rows).weights if mixer is None else signed_weights(mixer, rows)
        weights = weights.detach().double().cpu()
        pairs = looking @ weights @ looked_at.T
        ranked = pairs
        if mixer is not None:
            whole = looking @ weights.abs().sum(dim=-1, keepdim=True)
            ranked = pairs.abs() / whole.masked_fill(whole == 0, 1)
        for head, (one, share) in enumerate(zip(pairs, ranked, strict=True)):
            row, column = divmod(int(share.argmax()), len(keys))
            place = queries[row][0], keys[column][0]
            found.append((layer, head, float(one[row, column]), float(share[row, column]), *place))
    found.sort(key=lambda one: -one[3])
    table = pandas.DataFrame(found, columns=["layer", "head", "weight", "share", "query", "key"])
    table = table if mixers else table.drop(columns="share")
    return table.assign(rank=range(1, len(table) + 1))


def _shares(places: list[tuple[int, ...]], count: int, *, mean: bool) -> Float[Tensor, "place token"]:
    shares = torch.zeros(len(places), count, dtype=torch.float64)
    for row, pieces in zip(shares, places, strict=True):
        row[list(pieces)] = 1 / len(pieces) if mean else 1
    return shares
