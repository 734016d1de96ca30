"""Head metrics: spread, distance and target of attention.

Each is a mean over a text's queries, without padding, special tokens or fully blocked rows. Position 0 is not special
by itself. Without torch, because pages list metrics before any computation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.analysis.rows import QueryRows

from attention_viz.trace.kind import Unit

__all__ = ["METRICS", "Metric", "metrics_for"]

# How many numbers side by side processors compare at once, at most.
_SIDE_BY_SIDE = 32
# The smallest number of full precision in float32.
_TINY = 2.0**-126


@dataclass(frozen=True)
class Metric:
    """One number per head: a mean over the queries that count.

    Attributes:
        label: its name on a page.
        meaning: its meaning, in a sentence for newcomers.
        formula: in LaTeX, tokens as rows, A the head's weights, n queries that count.
        unit: its unit.
        source: its publication.
        function: returns each query's number, (…, row), from weights (…, row, key) and the tokens' facts; NaN for
            queries without one. Trailing keys that no row looks at may be left out.
        of: the input's requirement: "ids", if two tokens can be the same, or "patches" of an image; empty for anything.
    """

    label: str
    meaning: str
    formula: str
    unit: str
    source: str
    function: "Callable[[Tensor, QueryRows], Tensor]"
    of: str = ""

    def mean(self, weights: "Float[Tensor, 'row key']", rows: "QueryRows") -> float:
        """Return one head's metric: the mean over the rows that count, NaN without any."""
        return float(self.function(weights, rows)[rows.counted].double().nanmean())


def _entropy(weights: "Tensor", _rows: "QueryRows") -> "Tensor":
    # In the memory of the first step: this is asked of many rows, and new memory costs as much as a step.
    return weights.clamp_min(_TINY).log_().mul_(weights).sum(dim=-1).neg_()


def _distance(weights: "Tensor", rows: "QueryRows") -> "Tensor":
    if not rows.alike:
        return weights.new_full(weights.shape[:-1], nan)
    distance = rows.distance[:, : weights.shape[-1]]
    if rows.places is None:
        return (weights * distance).sum(dim=-1)
    # What goes to the class token is no distance away: the mean is over the patches.
    near = ~distance.isnan()
    return (weights * distance.nan_to_num()).sum(dim=-1) / (weights * near).sum(dim=-1)


def _confidence(weights: "Tensor", _rows: "QueryRows") -> "Tensor":
    # What is left over once a processor has compared as many at a time as it can takes several times as long: so the
    # last of a row are taken together with some before them, which are looked at twice.
    keys = weights.shape[-1]
    whole = keys - keys % _SIDE_BY_SIDE
    if whole in (0, keys):
        return weights.amax(dim=-1)
    return weights[..., :whole].amax(dim=-1).maximum(weights[..., -_SIDE_BY_SIDE:].amax(dim=-1))


def _duplicate(weights: "Tensor", rows: "QueryRows") -> "Tensor":
    having, keys = rows.duplicates.unbind(dim=-1)
    inside = keys < weights.shape[-1]
    return rows.over_duplicates(weights[..., having[inside], keys[inside]], inside)


def _special(weights: "Tensor", rows: "QueryRows") -> "Tensor":
    if not len(rows.special):
        return weights.new_full(weights.shape[:-1], nan)
    return weights.index_select(-1, rows.special[rows.special < weights.shape[-1]]).sum(dim=-1)


def _variance(weights: "Tensor", rows: "QueryRows") -> "Tensor":
    # Padded keys have no weight, and so no part in either sum.
    squares, whole = weights.norm(dim=-1).double().square(), weights.sum(dim=-1).double()
    return (squares / rows.count - (whole / rows.count) ** 2).clamp_min(0)


_PATTERNS = "Clark et al. 2019, What Does BERT Look At?, section 3"
_INDUCTION = "Olsson et al. 2022, In-context Learning and Induction Heads"

METRICS: dict[str, Metric] = {
    "entropy": Metric(
        "Entropy",
        "How widely a head spreads its weight: 0 if each token attends to one token, more if to many.",
        r"-\frac{1}{n}\sum_i\sum_j A_{ij}\ln A_{ij}",
        "nats",
        f"{_PATTERNS} (3.3)",
        _entropy,
    ),
    "previous": Metric(
        "Previous token",
        "The weight that each token puts on the token before it; in an image, on the patch to its left.",
        r"\frac{1}{n}\sum_i A_{i,i-1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.before),
    ),
    "next": Metric(
        "Next token",
        "The weight that each token puts on the token after it; in an image, on the patch to its right.",
        r"\frac{1}{n}\sum_i A_{i,i+1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.after),
    ),
    "above": Metric(
        "Patch above",
        "The weight that each image patch puts on the patch above it.",
        r"\frac{1}{n}\sum_i A_{i,i\uparrow}",
        "weight",
        "Cordonnier et al. 2020, On the Relationship between Self-Attention and Convolutional Layers, section 3",
        lambda weights, rows: rows.weight_at(weights, rows.above),
        of="patches",
    ),
    "self": Metric(
        "The token itself",
        "The weight that each token puts on itself.",
        r"\frac{1}{n}\sum_i A_{ii}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.itself),
    ),
    "first": Metric(
        "First position",
        "The weight on the first position, an attention sink of many heads.",
        r"\frac{1}{n}\sum_i A_{i,0}",
        "weight",
        "Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
        lambda weights, rows: weights[..., rows.first],
    ),
    "distance": Metric(
        "Mean distance",
        "The mean distance, in tokens, from a query to the keys that it attends to.",
        r"\frac{1}{n}\sum_i\sum_j A_{ij}\,|i-j|",
        "tokens",
        "Vig and Belinkov 2019, Analyzing the Structure of Attention, section 4.2",
        _distance,
    ),
    "duplicate": Metric(
        "Earlier same token",
        "The weight on earlier occurrences of the same token, if there are any.",
        r"\frac{1}{n}\sum_i\sum_{j<i,\;t_j=t_i} A_{ij}",
        "weight",
        "Wang et al. 2022, Interpretability in the Wild, section 3",
        _duplicate,
        of="ids",
    ),
    "induction": Metric(
        "Induction",
        "The weight on the token that followed the same token last time: how a head continues a pattern.",
        r"\frac{1}{n}\sum_i A_{i,j+1},\quad j=\max\{j<i: t_j=t_i\}",
        "weight",
        _INDUCTION,
        lambda weights, rows: rows.weight_at(weights, rows.following),
        of="ids",
    ),
    "special": Metric(
        "Special tokens",
        "The weight on tokens that the tokenizer added, such as [CLS], which are often attention sinks.",
        r"\frac{1}{n}\sum_i\sum_{j\;\text{special}} A_{ij}",
        "weight",
        f"{_PATTERNS}.2",
        _special,
    ),
    "confidence": Metric(
        "Confidence",
        "The largest weight in each token's row.",
        r"\frac{1}{n}\sum_i\max_j A_{ij}",
        "weight",
        "Voita et al. 2019, Analyzing Multi-Head Self-Attention, section 4",
        _confidence,
    ),
    "variance": Metric(
        "Variance",
        "How unequal the weights in a row are: 0 if they are all equal.",
        r"\frac{1}{n}\sum_i\frac{1}{m}\sum_j (A_{ij}-\bar A_i)^2",
        "weight²",
        "the variance of a row's m weights, on keys that aren't padding",
        _variance,
    ),
}

# What alone has the metrics that not everything has.
_OWNERS = {"ids": Unit.WORD, "patches": Unit.PATCH}


def metrics_for(unit: Unit) -> tuple[str, ...]:
    """Return applicable metric names in `METRICS` order."""
    return tuple(name for name, metric in METRICS.items() if _OWNERS.get(metric.of, unit) == unit)
