"""What a head does, in one number each: how spread, how far, to whom.

Every metric is a mean over the queries of a text. Padding is left out, and so are queries that the tokenizer calls
special, which stand for no word, and queries that may look at nothing. Position 0 is not special by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens

__all__ = ["METRICS", "Metric", "Rows"]

_TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, eq=False)
class Rows:
    """What a metric needs to know of the tokens: of some queries, and of the first keys of a text or of all.

    Attributes:
        positions: which queries these are, (row,).
        counted: True for those that count, (row,).
        real: True for keys that aren't padding, (key,).
        special: the keys that the tokenizer calls special, (special,).
        first: the first key of the text that isn't padding.
        count: how many keys of the whole text aren't padding.
        before: for each query the key one before it, −1 where there is none; likewise `after`.
        following: for each query the key after the most recent earlier token of its kind, −1 where there is none.
        duplicates: where a key is an earlier token of the query's kind, one (row, key) a line.
        alike: whether queries and keys are the same text.
    """

    positions: Int[Tensor, " row"]
    counted: Bool[Tensor, " row"]
    real: Bool[Tensor, " key"]
    special: Int[Tensor, " special"]
    first: int
    count: int
    before: Int[Tensor, " row"]
    after: Int[Tensor, " row"]
    following: Int[Tensor, " row"]
    duplicates: Int[Tensor, "pair 2"]
    alike: bool

    @classmethod
    def of(cls, queries: Tokens, keys: Tokens, *, alike: bool, positions: Sequence[int] | None = None) -> "Rows":
        """Of the tokens along the two axes.

        Args:
            queries: down the rows.
            keys: across the columns.
            alike: whether both are the same text.
            positions: which queries; all by default.
        """
        chosen = torch.arange(len(queries)) if positions is None else torch.tensor(positions, dtype=torch.long)
        counted = torch.zeros(len(queries), dtype=torch.bool)
        counted[list(queries.counted)] = True
        real = ~torch.tensor(keys.padding)
        before, after, following = torch.full((3, len(chosen)), -1)
        duplicates = torch.zeros(len(chosen), len(keys), dtype=torch.bool)
        if alike:
            ids, columns = torch.tensor(queries.ids), torch.arange(len(keys))
            duplicates = (ids[chosen, None] == ids) & (chosen[:, None] > columns) & real
            latest = torch.where(duplicates, columns, -1).amax(dim=-1)
            following = torch.where(latest >= 0, latest + 1, -1)
            before, after = (_neighbours(chosen + step, real) for step in (-1, 1))
        return cls(
            chosen,
            counted[chosen],
            real,
            torch.tensor(keys.special).nonzero()[:, 0],
            int(real.nonzero()[0]) if real.any() else 0,
            int(real.sum()),
            before,
            after,
            following,
            duplicates.nonzero(),
            alike,
        )

    @once
    def distance(self) -> Float[Tensor, "row key"]:
        """|query − key| in tokens."""
        return (self.positions[:, None] - torch.arange(len(self.real))).abs().float()

    def weight_at(
        self, weights: Float[Tensor, "*head row key"], keys: Int[Tensor, " row"]
    ) -> Float[Tensor, "*head row"]:
        """The weight on one key a query; NaN where a query has none. Keys left out of the weights have none."""
        inside = (keys >= 0) & (keys < weights.shape[-1])
        found = weights[..., torch.arange(len(keys)), torch.where(inside, keys, 0)]
        return torch.where(keys >= 0, torch.where(inside, found, 0), torch.nan)


def _neighbours(places: Int[Tensor, " row"], real: Bool[Tensor, " key"]) -> Int[Tensor, " row"]:
    inside = (places >= 0) & (places < len(real))
    return torch.where(inside & real[places.clamp(0, len(real) - 1)], places, -1)


@dataclass(frozen=True)
class Metric:
    """One number for a head: the mean of what each query that counts has.

    Attributes:
        label: its name on a page.
        meaning: what it tells, in a sentence for somebody who sees the name for the first time.
        formula: in LaTeX, tokens as rows, A the head's weights, n queries that count.
        unit: what it is counted in.
        source: where it comes from.
        function: gives each query's number, (…, row), for weights (…, row, key) and what is known of the tokens; NaN
            where a query hasn't what is asked for. Keys that no row looks at may be left out of the end.
    """

    label: str
    meaning: str
    formula: str
    unit: str
    source: str
    function: Callable[[Tensor, Rows], Tensor]

    def mean(self, weights: Float[Tensor, "row key"], rows: Rows) -> float:
        """The metric of one head: the mean over the rows that count; NaN where none has what is asked for."""
        return float(self.function(weights, rows)[rows.counted].double().nanmean())


def _entropy(weights: Tensor, _rows: Rows) -> Tensor:
    return -(weights * weights.clamp_min(_TINY).log()).sum(dim=-1)


def _self(weights: Tensor, rows: Rows) -> Tensor:
    return rows.weight_at(weights, rows.positions if rows.alike else torch.full_like(rows.positions, -1))


def _distance(weights: Tensor, rows: Rows) -> Tensor:
    if not rows.alike:
        return torch.full(weights.shape[:-1], torch.nan)
    return (weights * rows.distance[:, : weights.shape[-1]]).sum(dim=-1)


def _duplicate(weights: Tensor, rows: Rows) -> Tensor:
    having, keys = rows.duplicates.unbind(dim=-1)
    inside = keys < weights.shape[-1]
    sums = torch.full(weights.shape[:-1], torch.nan)
    sums[..., having] = 0
    return sums.index_add(-1, having[inside], weights[..., having[inside], keys[inside]])


def _variance(weights: Tensor, rows: Rows) -> Tensor:
    # Padded keys have no weight, and so no part in either sum.
    squares, whole = torch.linalg.vector_norm(weights, dim=-1).double().square(), weights.sum(dim=-1).double()
    return (squares / rows.count - (whole / rows.count) ** 2).clamp_min(0)


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
        lambda weights, rows: rows.weight_at(weights, rows.before),
    ),
    "next": Metric(
        "Next token",
        "How much each token looks at the one after it.",
        r"\frac{1}{n}\sum_i A_{i,i+1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.after),
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
        lambda weights, rows: weights[..., rows.first],
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
        lambda weights, rows: rows.weight_at(weights, rows.following),
    ),
    "special": Metric(
        "Special tokens",
        "How much goes to tokens that the tokenizer added, such as [CLS], where heads rest as well.",
        r"\frac{1}{n}\sum_i\sum_{j\;\text{special}} A_{ij}",
        "weight",
        f"{_PATTERNS}.2",
        lambda weights, rows: weights[..., rows.special[rows.special < weights.shape[-1]]].sum(dim=-1),
    ),
    "confidence": Metric(
        "Confidence",
        "How much the strongest key of each token gets.",
        r"\frac{1}{n}\sum_i\max_j A_{ij}",
        "weight",
        "Voita et al. 2019, Analyzing Multi-Head Self-Attention, section 4",
        lambda weights, _rows: weights.amax(dim=-1),
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
