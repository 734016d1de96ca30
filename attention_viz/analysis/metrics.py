"""Head metrics: spread, distance and target of attention.

Each is a mean over a text's queries, without padding, special tokens or fully blocked rows. Position 0 is not special
by itself. Without torch, because pages list metrics before any computation.

Layers without a softmax have signed weights, whose rows don't sum to 1. There a metric is of shares of size: the size
of each weight over the sum of its row's sizes, |A| over Σ|A|. A few metrics are of the signed weights themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Literal

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.analysis.rows import QueryRows

from attention_viz.trace.kind import Unit

__all__ = ["METRICS", "SHARE", "LayerKind", "Metric", "metrics_for", "metrics_in"]

LayerKind = Literal["softmax", "mixer"]
# The unit of a metric of a layer without a softmax, and the ending of its label.
SHARE = "share of size"
# A share in a formula.
_SHARE = r"\frac{|A_{ij}|}{\sum_j|A_{ij}|}"

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
        layers: the kinds of layers that have it: "softmax", "mixer" for layers without a softmax, or both.
        mixers: its meaning in layers without a softmax; if they don't have it, the reason.
    """

    label: str
    meaning: str
    formula: str
    unit: str
    source: str
    function: "Callable[[Tensor, QueryRows], Tensor]"
    of: str = ""
    layers: tuple[LayerKind, ...] = ("softmax",)
    mixers: str = ""

    @property
    def in_mixers(self) -> "Metric":
        """The metric with its label, meaning, formula and unit for layers without a softmax.

        If its unit is a weight, its label ends in "share of size", and S in the formula is that share.
        """
        if self.layers == ("mixer",) or "mixer" not in self.layers:
            return self
        formula = f"{self.formula.replace('A_', 'S_')},\\quad S_{{ij}}={_SHARE}"
        weight = self.unit == "weight"
        label, unit = (f"{self.label}, {SHARE}", SHARE) if weight else (self.label, self.unit)
        return replace(self, label=label, meaning=self.mixers, formula=formula, unit=unit)

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


def _sizes(weights: "Tensor") -> "tuple[Tensor, Tensor]":
    """Return the sizes and each row's sum of them; NaN for 0, in which there are no shares."""
    sizes = weights.double().abs()
    whole = sizes.sum(dim=-1)
    return sizes, whole.masked_fill(whole == 0, nan)


def _negative(weights: "Tensor", _rows: "QueryRows") -> "Tensor":
    return weights.double().clamp_max(0).sum(dim=-1).neg() / _sizes(weights)[1]


def _reach(weights: "Tensor", rows: "QueryRows") -> "Tensor":
    if not rows.alike:
        return weights.new_full(weights.shape[:-1], nan)
    distance = rows.distance[:, : weights.shape[-1]].double()
    sizes, whole = _sizes(weights * (distance != 0))
    return (sizes * distance).sum(dim=-1) / whole


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
        mixers="a signed row is no distribution, so it has no entropy; reach and confidence measure its spread",
    ),
    "previous": Metric(
        "Previous token",
        "The weight that each token puts on the token before it; in an image, on the patch to its left.",
        r"\frac{1}{n}\sum_i A_{i,i-1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.before),
        layers=("softmax", "mixer"),
        mixers="The share of size on the token before each token.",
    ),
    "next": Metric(
        "Next token",
        "The weight that each token puts on the token after it; in an image, on the patch to its right.",
        r"\frac{1}{n}\sum_i A_{i,i+1}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.after),
        layers=("softmax", "mixer"),
        mixers="The share of size on the token after each token.",
    ),
    "above": Metric(
        "Patch above",
        "The weight that each image patch puts on the patch above it.",
        r"\frac{1}{n}\sum_i A_{i,i\uparrow}",
        "weight",
        "Cordonnier et al. 2020, On the Relationship between Self-Attention and Convolutional Layers, section 3",
        lambda weights, rows: rows.weight_at(weights, rows.above),
        of="patches",
        mixers="its input has no image patches",
    ),
    "self": Metric(
        "The token itself",
        "The weight that each token puts on itself.",
        r"\frac{1}{n}\sum_i A_{ii}",
        "weight",
        f"{_PATTERNS}.1",
        lambda weights, rows: rows.weight_at(weights, rows.itself),
        layers=("softmax", "mixer"),
        mixers="The share of size on the diagonal: what each token carries to itself, its skip included.",
    ),
    "first": Metric(
        "First position",
        "The weight on the first position, an attention sink of many heads.",
        r"\frac{1}{n}\sum_i A_{i,0}",
        "weight",
        "Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
        lambda weights, rows: weights[..., rows.first],
        layers=("softmax", "mixer"),
        mixers="The share of size on the first position.",
    ),
    "distance": Metric(
        "Mean distance",
        "The mean distance, in tokens, from a query to the keys that it attends to.",
        r"\frac{1}{n}\sum_i\sum_j A_{ij}\,|i-j|",
        "tokens",
        "Vig and Belinkov 2019, Analyzing the Structure of Attention, section 4.2",
        _distance,
        layers=("softmax", "mixer"),
        mixers="The mean distance, in tokens, from a query to the keys, by shares of size.",
    ),
    "duplicate": Metric(
        "Earlier same token",
        "The weight on earlier occurrences of the same token, if there are any.",
        r"\frac{1}{n}\sum_i\sum_{j<i,\;t_j=t_i} A_{ij}",
        "weight",
        "Wang et al. 2022, Interpretability in the Wild, section 3",
        _duplicate,
        of="ids",
        layers=("softmax", "mixer"),
        mixers="The share of size on earlier occurrences of the same token, if there are any.",
    ),
    "induction": Metric(
        "Induction",
        "The weight on the token that followed the same token last time: how a head continues a pattern.",
        r"\frac{1}{n}\sum_i A_{i,j+1},\quad j=\max\{j<i: t_j=t_i\}",
        "weight",
        _INDUCTION,
        lambda weights, rows: rows.weight_at(weights, rows.following),
        of="ids",
        layers=("softmax", "mixer"),
        mixers="The share of size on the token that followed the same token last time.",
    ),
    "special": Metric(
        "Special tokens",
        "The weight on tokens that the tokenizer added, such as [CLS], which are often attention sinks.",
        r"\frac{1}{n}\sum_i\sum_{j\;\text{special}} A_{ij}",
        "weight",
        f"{_PATTERNS}.2",
        _special,
        layers=("softmax", "mixer"),
        mixers="The share of size on tokens that the tokenizer added, such as [CLS].",
    ),
    "confidence": Metric(
        "Confidence",
        "The largest weight in each token's row.",
        r"\frac{1}{n}\sum_i\max_j A_{ij}",
        "weight",
        "Voita et al. 2019, Analyzing Multi-Head Self-Attention, section 4",
        _confidence,
        layers=("softmax", "mixer"),
        mixers="The largest share of size in each token's row.",
    ),
    "variance": Metric(
        "Variance",
        "How unequal the weights in a row are: 0 if they are all equal.",
        r"\frac{1}{n}\sum_i\frac{1}{m}\sum_j (A_{ij}-\bar A_i)^2",
        "weight²",
        "the variance of a row's m weights, on keys that aren't padding",
        _variance,
        mixers="its scale is that of weights that sum to 1; row_size and confidence are the measures here",
    ),
    "negative": Metric(
        f"Negative, {SHARE}",
        "The share of size that is negative: values that are taken away, not carried.",
        r"\frac{1}{n}\sum_i\frac{\sum_j\max(-A_{ij},0)}{\sum_j|A_{ij}|}",
        SHARE,
        "the negative part of a signed row",
        _negative,
        layers=("mixer",),
    ),
    "row_sum": Metric(
        "Sum of the row",
        "The sum of a row's signed weights; a softmax makes it 1.",
        r"\frac{1}{n}\sum_i\sum_j A_{ij}",
        "signed weight",
        "the sum of a signed row",
        lambda weights, _rows: weights.double().sum(dim=-1),
        layers=("mixer",),
    ),
    "row_size": Metric(
        "Size of the row",
        "The sum of the sizes of a row's weights, signs aside.",
        r"\frac{1}{n}\sum_i\sum_j |A_{ij}|",
        "size of weight",
        "the sum of a signed row's sizes",
        lambda weights, _rows: weights.double().abs().sum(dim=-1),
        layers=("mixer",),
    ),
    "reach": Metric(
        "Reach",
        "The mean distance, in tokens, of the size off the diagonal: how far the layer's memory reaches.",
        r"\frac{1}{n}\sum_i\frac{\sum_{j\ne i}|A_{ij}|\,|i-j|}{\sum_{j\ne i}|A_{ij}|}",
        "tokens",
        "the mean distance of a row's other tokens, by size",
        _reach,
        layers=("mixer",),
    ),
}

# What alone has the metrics that not everything has.
_OWNERS = {"ids": Unit.WORD, "patches": Unit.PATCH}


def metrics_in(layers: LayerKind) -> tuple[str, ...]:
    """Return the names of the metrics that a kind of layer has, in `METRICS` order."""
    return tuple(name for name, metric in METRICS.items() if layers in metric.layers)


def metrics_for(unit: Unit, layers: LayerKind = "softmax") -> tuple[str, ...]:
    """Return applicable metric names in `METRICS` order."""
    return tuple(name for name in metrics_in(layers) if _OWNERS.get(METRICS[name].of, unit) == unit)
