"""What a head does, in one number each: how spread, how far, to whom; for all heads of a trace as a table.

Every metric is a mean over the queries of a text. Padding is left out, and so are queries that the tokenizer calls
special, which stand for no word, and queries that may look at nothing. Position 0 is not special by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["METRICS", "Metric", "Rows", "head_table", "mean_table"]

_TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, eq=False)
class Rows:
    """What a metric needs to know of the tokens, worked out once for all heads.

    Attributes:
        counted: the queries that count, (count,).
        real: True for keys that aren't padding, (key,).
        special: True for keys that the tokenizer calls special, (key,).
        first: the first key that isn't padding.
        distance: |query − key| in tokens, (query, key).
        before: for each query the key one before it, −1 where it doesn't count or has none; likewise `after`.
        following: for each query the key after the most recent earlier token of its kind, −1 where there is none.
        duplicates: the pairs where a key is an earlier token of the query's kind, one (query, key) a row.
        alike: whether queries and keys are the same text.
    """

    counted: Int[Tensor, " count"]
    real: Bool[Tensor, " key"]
    special: Bool[Tensor, " key"]
    first: int
    distance: Float[Tensor, "query key"]
    before: Int[Tensor, " query"]
    after: Int[Tensor, " query"]
    following: Int[Tensor, " query"]
    duplicates: Int[Tensor, "pair 2"]
    alike: bool

    @classmethod
    def of(cls, queries: Tokens, keys: Tokens, *, alike: bool) -> "Rows":
        """Of the tokens along the two axes; `alike` where both are the same text."""
        real = ~torch.tensor(keys.padding)
        rows, columns = torch.arange(len(queries)), torch.arange(len(keys))
        nothing = torch.full((len(queries),), -1)
        duplicates = torch.zeros(len(queries), len(keys), dtype=torch.bool)
        following, before, after = nothing, nothing, nothing
        if alike:
            ids = torch.tensor(queries.ids)
            duplicates = (ids[:, None] == ids) & (rows[:, None] > columns) & real
            latest = torch.where(duplicates, columns, -1).amax(dim=-1)
            following = torch.where(latest >= 0, latest + 1, -1)
            before, after = (_neighbours(rows + step, real) for step in (-1, 1))
        return cls(
            torch.tensor(queries.counted, dtype=torch.long),
            real,
            torch.tensor(keys.special),
            int(real.nonzero()[0]) if real.any() else 0,
            (rows[:, None] - columns).abs().float(),
            before,
            after,
            following,
            duplicates.nonzero(),
            alike,
        )

    def mean_at(self, weights: Float[Tensor, "query key"], keys: Int[Tensor, " query"]) -> float:
        """The mean weight on one key a query, over the counted queries that have one; NaN where none has."""
        rows = self.counted[keys[self.counted] >= 0]
        return float(weights[rows, keys[rows]].double().mean())

    def mean(self, values: Float[Tensor, " query"]) -> float:
        """The mean over the counted queries; NaN where there is none."""
        return float(values[self.counted].double().mean())


def _neighbours(places: Int[Tensor, " query"], real: Bool[Tensor, " key"]) -> Int[Tensor, " query"]:
    inside = (places >= 0) & (places < len(real))
    return torch.where(inside & real[places.clamp(0, len(real) - 1)], places, -1)


@dataclass(frozen=True)
class Metric:
    """One number for a head.

    Attributes:
        label: its name on a page.
        meaning: what it tells, in a sentence for somebody who sees the name for the first time.
        formula: in LaTeX, tokens as rows, A the head's weights, n queries that count.
        unit: what it is counted in.
        source: where it comes from.
        function: gives it for the weights of one head, (query, key), and what is known of the tokens; NaN where no
            query of the text has what it asks for.
    """

    label: str
    meaning: str
    formula: str
    unit: str
    source: str
    function: Callable[[Tensor, Rows], float]


def _entropy(weights: Tensor, rows: Rows) -> float:
    return rows.mean(-(weights * weights.clamp_min(_TINY).log()).sum(dim=-1))


def _self(weights: Tensor, rows: Rows) -> float:
    return rows.mean(weights.diagonal()) if rows.alike else torch.nan


def _distance(weights: Tensor, rows: Rows) -> float:
    return rows.mean((weights * rows.distance).sum(dim=-1, dtype=torch.float64)) if rows.alike else torch.nan


def _duplicate(weights: Tensor, rows: Rows) -> float:
    queries, keys = rows.duplicates.unbind(dim=-1)
    sums = torch.zeros(len(weights), dtype=torch.float64).index_add(0, queries, weights[queries, keys].double())
    having = rows.counted[torch.isin(rows.counted, queries)]
    return float(sums[having].mean())


def _variance(weights: Tensor, rows: Rows) -> float:
    # Padded keys have no weight, and so no part in either sum.
    squares, whole = (one.sum(dim=-1).double() for one in (weights * weights, weights))
    count = int(rows.real.sum())
    return rows.mean((squares / count - (whole / count) ** 2).clamp_min(0))


_PATTERNS = "Clark et al. 2019, What Does BERT Look At?, section 3"
_INDUCTION = "Olsson et al. 2022, In-context Learning and Induction Heads"

METRICS: dict[str, Metric] = {
    "entropy": Metric(
        "Entropy",
        "How far a head spreads its weight: 0 where each token looks at one other, more where at many.",
        r"-\frac{1}{n}\sum_i\sum_j A_{ij}\ln A_{ij}",
        "nats",
        f"{_PATTERNS} (3.3)",
        _entropy,
    ),
    "previous": Metric(
        "Previous token",
        "How much each token looks at the one before it.",
        r"\frac{1}{n}\sum_i A_{i,i-1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.mean_at(weights, rows.before),
    ),
    "next": Metric(
        "Next token",
        "How much each token looks at the one after it.",
        r"\frac{1}{n}\sum_i A_{i,i+1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.mean_at(weights, rows.after),
    ),
    "self": Metric(
        "The token itself",
        "How much each token looks at itself.",
        r"\frac{1}{n}\sum_i A_{ii}",
        "weight",
        f"{_PATTERNS}.1",
        _self,
    ),
    "first": Metric(
        "First position",
        "How much goes to the first position, where many heads rest when they have nothing to do.",
        r"\frac{1}{n}\sum_i A_{i,0}",
        "weight",
        "Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
        lambda weights, rows: rows.mean(weights[:, rows.first]),
    ),
    "distance": Metric(
        "Mean distance",
        "How many tokens away a head looks, on average.",
        r"\frac{1}{n}\sum_i\sum_j A_{ij}\,|i-j|",
        "tokens",
        "Vig and Belinkov 2019, Analyzing the Structure of Attention, section 4.2",
        _distance,
    ),
    "duplicate": Metric(
        "Earlier same token",
        "How much goes to earlier tokens of the same kind, where there are any.",
        r"\frac{1}{n}\sum_i\sum_{j<i,\;t_j=t_i} A_{ij}",
        "weight",
        "Wang et al. 2022, Interpretability in the Wild, section 3",
        _duplicate,
    ),
    "induction": Metric(
        "Induction",
        "How much goes to what followed the same token last time: the way to go on with a pattern.",
        r"\frac{1}{n}\sum_i A_{i,j+1},\quad j=\max\{j<i: t_j=t_i\}",
        "weight",
        _INDUCTION,
        lambda weights, rows: rows.mean_at(weights, rows.following),
    ),
    "special": Metric(
        "Special tokens",
        "How much goes to tokens that the tokenizer added, such as [CLS], where heads rest as well.",
        r"\frac{1}{n}\sum_i\sum_{j\;\text{special}} A_{ij}",
        "weight",
        f"{_PATTERNS}.2",
        lambda weights, rows: rows.mean(weights[:, rows.special].sum(dim=-1)),
    ),
    "confidence": Metric(
        "Confidence",
        "How much the strongest key of each token gets.",
        r"\frac{1}{n}\sum_i\max_j A_{ij}",
        "weight",
        "Voita et al. 2019, Analyzing Multi-Head Self-Attention, section 4",
        lambda weights, rows: rows.mean(weights.amax(dim=-1)),
    ),
    "variance": Metric(
        "Variance",
        "How unequal a row's weights are: 0 where all are alike.",
        r"\frac{1}{n}\sum_i\frac{1}{m}\sum_j (A_{ij}-\bar A_i)^2",
        "weight²",
        "the variance of a row's m weights, on keys that aren't padding",
        _variance,
    ),
}


def head_table(traces: "Trace | Sequence[Trace]", stream: str | None = None) -> "pandas.DataFrame":
    """Every metric of every head.

    Args:
        traces: one text's trace; or several texts' of one model, whose mean is taken over the texts that have what a
            metric asks for, with its spread (standard deviation, population) in a column ending in "_spread".
        stream: which attention; the only one there is, if none is named.

    Returns:
        One row a head, index (layer, head), one column a metric, float64. NaN where no query has what is asked for;
        of cross-attention, whose two axes are different texts, that is so for all that compares their positions.

    Raises:
        TraceError: no trace, or no such stream, or none named where there are several; or traces of different heads.
    """
    if isinstance(traces, Trace):
        return _table(traces, traces.stream(stream))
    if not traces:
        raise TraceError("a table of heads was asked for without a trace; needed: one or more")
    return mean_table([_table(trace, trace.stream(stream)) for trace in traces])


def mean_table(tables: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """The mean of several texts' tables, each of one trace, with its spread: what `head_table` gives for their traces.

    Raises:
        TraceError: no table, or tables of different heads.
    """
    import pandas

    if not tables:
        raise TraceError("the mean of several tables was asked for without a table; needed: one or more")
    if any(not table.index.equals(tables[0].index) for table in tables):
        raise TraceError(
            f"traces of different heads can't be averaged; got {sorted({len(table) for table in tables})} heads"
        )
    numbers = torch.stack([torch.tensor(table.to_numpy(copy=True)) for table in tables])
    mean = numbers.nanmean(dim=0)
    spread = (numbers - mean).square().nanmean(dim=0).sqrt()
    columns = [*METRICS, *(f"{name}_spread" for name in METRICS)]
    return pandas.DataFrame(torch.cat([mean, spread], dim=-1).numpy(), index=tables[0].index, columns=columns)


def _table(trace: Trace, stream: str) -> "pandas.DataFrame":
    import pandas

    rows = Rows.of(trace.query_tokens(stream), trace.key_tokens(stream), alike=stream != "cross")
    found: dict[tuple[int, int], list[float]] = {}
    for layer in range(trace.layer_count(stream)):
        attention = trace.attention(layer, stream)
        for head, one in enumerate(attention.weights.detach().float().cpu()):
            looking = rows if attention.allowed is None else _looking(one, rows)
            found[layer, head] = [metric.function(one, looking) for metric in METRICS.values()]
    index = pandas.MultiIndex.from_tuples(list(found), names=["layer", "head"])
    return pandas.DataFrame(list(found.values()), index=index, columns=list(METRICS), dtype="float64")


def _looking(weights: Tensor, rows: Rows) -> Rows:
    """Without the queries that may look at nothing in this head."""
    some = weights[rows.counted].any(dim=-1)
    return rows if bool(some.all()) else replace(rows, counted=rows.counted[some])
