"""Test a hypothesis: rank heads on half the texts, report the rest."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.measured import looks_back
from attention_viz.analysis.signed import mixers_of, signed_weights
from attention_viz.corpus.hypotheses.curves import (
    average_precision,
    best_threshold,
    counts_of,
    edge_of,
    scores_at,
)
from attention_viz.corpus.hypotheses.language import Hypothesis
from attention_viz.corpus.hypotheses.values import HypothesisAxis
from attention_viz.errors import ScanError
from attention_viz.operation.token_mixer import shares_of_size
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

__all__ = ["Tested", "counted", "put_to_the_test"]

# Heads of which the second half's texts are drawn anew, and how often.
_DRAWN, _TIMES = 10, 300
# A head satisfies a hypothesis from this average precision on; a baseline as good as the second number shows that
# positions alone decide it.
_HOLDS, _EXACT = 0.5, 0.99
_BASELINES = ("distance", "key position", "distance and key position")


@dataclass(frozen=True, eq=False, repr=False)
class Tested:
    """The result of a hypothesis' test.

    Attributes:
        said: the hypothesis.
        table: one row per head, index (layer, head), ranked on the first half. threshold was chosen there; precision
            and recall above it, and average_precision, are of the second half. For the ten best heads, columns ending
            in "_low" and "_high" bound a 95 % bootstrap interval (300 resamples of those texts).
        baseline: the average precision of a guess by position alone on the second half, and its kind.
        verdict: the conclusion, in a sentence.
        holds: whether a head satisfies the hypothesis.
        texts: the number of texts for ranking, and for testing.
        pairs: the number of pairs that satisfy the hypothesis, in each.
    """

    said: str
    table: "pandas.DataFrame"
    baseline: tuple[float, str]
    verdict: str
    holds: bool
    texts: tuple[int, int]
    pairs: tuple[int, int]

    def __repr__(self) -> str:
        """Return the hypothesis and the verdict."""
        return f"Tested({self.said!r}: {self.verdict})"


@dataclass(frozen=True, eq=False)
class _TextPairs:
    holds: "NDArray[Any]"
    distance: "NDArray[Any]"
    key: "NDArray[Any]"
    counts: "NDArray[Any]"


def put_to_the_test(hypothesis: Hypothesis, traces: Iterable[Trace], stream: str) -> Tested:
    """Rank a stream's heads on every other text; test them on the rest."""
    texts, heads = list[_TextPairs](), list[tuple[int, int]]()
    for trace in traces:
        heads = [
            (layer, head) for layer in trace.layer_numbers(stream) for head in range(trace.head_count(layer, stream))
        ]
        texts.append(_text(hypothesis, trace, stream))
    first, second = texts[::2], texts[1::2]
    pairs = tuple(int(sum(text.holds.sum() for text in half)) for half in (first, second))
    if not all(pairs):
        raise ScanError(
            f"“{hypothesis.said}” holds for {pairs[0]} pairs in {len(first)} texts and {pairs[1]} in {len(second)} "
            "others; both need at least 1, so use more or other texts"
        )
    learnt = _summed([text.counts for text in first])
    order = numpy.argsort(-average_precision(learnt), kind="stable")
    thresholds = best_threshold(learnt)
    table = _table([text.counts for text in second], heads, order, thresholds)
    baseline, way, base = _baseline(first, second)
    best = [text.counts[order[0]] for text in second]
    holds, verdict = _verdict(table, (baseline, way), _ahead(best, base))
    return Tested(
        hypothesis.said, table, (baseline, way), verdict, holds, (len(first), len(second)), (pairs[0], pairs[1])
    )


def counted(runs: Iterable[Trace], count: int, progress: Callable[[int, int], object]) -> Iterator[Trace]:
    """Yield the runs, reporting progress at each."""
    for done, run in enumerate(runs):
        progress(done, count)
        yield run


def _text(hypothesis: Hypothesis, trace: Trace, stream: str) -> _TextPairs:
    """Leave out sink keys unless the hypothesis concerns them."""
    back = looks_back(trace, stream)
    queries, keys = HypothesisAxis(trace.query_tokens(stream), back), HypothesisAxis(trace.key_tokens(stream), back)
    rows = list(queries.tokens.counted)
    asks = hypothesis.asked & {"is_special", "is_first"}
    shown = numpy.ones(len(keys.tokens), dtype=bool) if asks else ~keys.resting
    shown &= ~numpy.array(keys.tokens.padding)
    if stream in trace.mixers:
        found = [shares_of_size(signed_weights(mixer, rows)) for mixer in mixers_of(trace, stream).values()]
    else:
        calls = (trace.attention(layer, stream).rows(rows) for layer in trace.layer_numbers(stream))
        found = [call.weights.detach().float().cpu() for call in calls]
    weights = numpy.concatenate([one.numpy() for one in found])
    places = numpy.broadcast_to(shown, weights.shape[1:]).copy()
    if back:
        places &= numpy.arange(len(shown)) <= numpy.array(rows)[:, None]
    holds = hypothesis.holds(queries, keys)[rows][places]
    query, key = numpy.nonzero(places)
    flat = numpy.nan_to_num(weights[:, places])
    return _TextPairs(holds, numpy.array(rows)[query] - key, key, counts_of(flat, holds).astype(numpy.float32))


def _table(
    texts: "Sequence[NDArray[Any]]", heads: Sequence[tuple[int, int]], order: "NDArray[Any]", thresholds: "NDArray[Any]"
) -> "pandas.DataFrame":
    import pandas

    whole = _summed(texts)[order]
    at = thresholds[order]
    columns = {"threshold": edge_of(at), **_phrase(whole, at)}
    drawn = numpy.stack([text[order[:_DRAWN]] for text in texts])
    spans = numpy.stack(
        [list(_phrase(numpy.tensordot(draw, drawn, 1), at[:_DRAWN]).values()) for draw in _draws(len(texts))]
    )
    low, high = _between(spans)
    for place, name in enumerate(list(columns)[1:]):
        for ending, found in (("_low", low), ("_high", high)):
            column = numpy.full(len(order), numpy.nan)
            column[: found.shape[1]] = found[place]
            columns[name + ending] = column
    index = pandas.MultiIndex.from_tuples([heads[one] for one in order], names=["layer", "head"])
    return pandas.DataFrame(columns, index=index)


def _summed(counts: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
    return numpy.sum(numpy.stack(counts), axis=0)


def _phrase(counts: "NDArray[Any]", thresholds: "NDArray[Any]") -> "dict[str, NDArray[Any]]":
    scores = scores_at(counts, thresholds)
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "average_precision": average_precision(counts),
    }


def _draws(texts: int) -> "NDArray[Any]":
    """Return counts, (draw, text). Source: Efron 1979."""
    return numpy.random.default_rng(0).multinomial(texts, numpy.full(texts, 1 / texts), size=_TIMES)


def _between(numbers: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Bound 95 % of draws along axis 0, without NaN."""
    ends = (2.5, 97.5)
    known = numpy.where(numpy.isnan(numbers), numpy.nanmedian(numpy.nan_to_num(numbers), axis=0), numbers)
    low, high = numpy.percentile(known, ends, axis=0)
    return low, high


def _baseline(first: Sequence[_TextPairs], second: Sequence[_TextPairs]) -> "tuple[float, str, list[NDArray[Any]]]":
    """Choose the best position-only baseline on the first half."""
    rates = [_rates(first, name) for name in ("distance", "key")]

    def guessed(text: _TextPairs) -> "NDArray[Any]":
        one, other = (
            numpy.array([rate.get(place, 0.0) for place in places.tolist()])
            for rate, places in zip(rates, (text.distance, text.key), strict=True)
        )
        return counts_of(numpy.stack([one, other, one * other]), text.holds)

    best = int(numpy.nanargmax(average_precision(_summed([guessed(text) for text in first]))))
    counts = [guessed(text)[best] for text in second]
    return float(average_precision(_summed(counts))), _BASELINES[best], counts


def _rates(texts: Sequence[_TextPairs], name: str) -> dict[int, float]:
    places = numpy.concatenate([getattr(text, name) for text in texts])
    holds = numpy.concatenate([text.holds for text in texts])
    known, at = numpy.unique(places, return_inverse=True)
    rate = numpy.bincount(at, weights=holds) / numpy.bincount(at)
    return dict(zip(known.tolist(), rate.tolist(), strict=True))


def _ahead(head: "Sequence[NDArray[Any]]", base: "Sequence[NDArray[Any]]") -> tuple[float, float]:
    """Bound the lead in average precision, 95 % of draws."""
    both = numpy.stack([numpy.stack(head), numpy.stack(base)], axis=1)
    found = numpy.stack([average_precision(numpy.tensordot(draw, both, 1)) for draw in _draws(len(head))])
    low, high = _between(found[:, 0] - found[:, 1])
    return float(low), float(high)


def _verdict(table: "pandas.DataFrame", baseline: tuple[float, str], ahead: tuple[float, float]) -> tuple[bool, str]:
    layer, head = table.index[0]
    best = table.iloc[0]
    phrase = f"average precision {best['average_precision']:.2f}, {best['average_precision_low']:.2f} to "
    phrase += f"{best['average_precision_high']:.2f}"
    base, way = baseline
    beside = f"guessing by {way} alone reaches {base:.2f}"
    if not best["average_precision_low"] >= _HOLDS:
        return False, f"No head does this: the best, {layer}·{head}, reaches {phrase}; {beside}"
    if base >= _EXACT:
        return True, f"Head {layer}·{head} does this ({phrase}), but positions alone decide it: {beside}"
    if not ahead[0] > 0:
        return False, f"Head {layer}·{head} does no better than positions: {phrase}; {beside}"
    return True, f"Head {layer}·{head} does this: {phrase}; {beside}"
