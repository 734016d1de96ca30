"""The Heads page's headline for each view."""

from collections.abc import Mapping, Sequence

import pandas
from jaxtyping import Float
from torch import Tensor

from attention_viz.trace.spelling import weight_text
from attention_viz.views.figures.points import metric_in
from attention_viz.views.style.wording import share_text, with_minus

# Correlations nearer to 0 show no relation worth a headline.
_RELATED = 0.3

Head = tuple[int, int]


def pattern_words(table: pandas.DataFrame) -> str:
    """Name the heads with the sharpest and the most even rows; empty without numbers."""
    entropies = _measured(table, "entropy")
    if len(entropies) < 2:
        return ""
    sharpest, broadest = _name(entropies.idxmin()), _name(entropies.idxmax())
    return f"{sharpest} has the sharpest rows of all {len(entropies)} heads, and {broadest} the most even ones."


def metric_headline(table: pandas.DataFrame, name: str) -> str:
    """Name the heads at both ends of a metric; empty without numbers."""
    numbers = _measured(table, name)
    if len(numbers) < 2:
        return ""
    label = metric_in(table, name).label
    ends = [f"{_name(head)} ({_short(float(numbers.loc[head]))})" for head in (numbers.idxmax(), numbers.idxmin())]
    return f"{label}: highest in {ends[0]}, lowest in {ends[1]}."


def scatter_words(table: pandas.DataFrame, first: str, second: str) -> str:
    """Say whether two metrics rise together; empty without numbers."""
    one, other = (_measured(table, name) for name in (first, second))
    both = one.index.intersection(other.index)
    labels = [_lower(metric_in(table, name).label) for name in (first, second)]
    together = one.loc[both].corr(other.loc[both]) if len(both) > 2 and first != second else float("nan")
    if together != together:
        return ""
    how = (
        f"{labels[0]} and {labels[1]} rise together"
        if together > _RELATED
        else f"{labels[1]} falls as {labels[0]} rises"
        if together < -_RELATED
        else f"{labels[0]} and {labels[1]} are hardly related"
    )
    return f"Over {len(both)} heads, {how}: correlation {with_minus(f'{together:.2f}')}."


def likeness_words(heads: Sequence[Head], distances: Float[Tensor, "one other"]) -> str:
    """Name the two heads that are most alike, and the one furthest from the others; empty for few heads."""
    count = len(heads)
    if count < 3:
        return ""
    apart = distances.clone().float()
    apart.fill_diagonal_(float("inf"))
    one, other = divmod(int(apart.argmin()), count)
    alone = int(apart.min(dim=1).values.argmax())
    return (
        f"{_name(heads[one])} and {_name(heads[other])} are most alike; {_name(heads[alone])} is least like any other."
    )


def tested_words(effects: Mapping[Head, float], count: int) -> str:
    """Name the head whose ablation moves the output most, once all were tested."""
    if len(effects) < count or not effects:
        return "Each head is ablated in turn, to see how far the output moves."
    head = max(effects, key=lambda one: effects[one])
    return f"Without {_name(head)}, the output moves by {share_text(effects[head])}: the most of {count} heads."


def _measured(table: pandas.DataFrame, name: str) -> pandas.Series:
    numbers = table[name].dropna().to_dict() if name in table else {}
    return pandas.Series(numbers, dtype="float64")


def _name(head: object) -> str:
    layer, one = head if isinstance(head, tuple) else (head, 0)
    return f"{layer}·{one}"


def _short(number: float) -> str:
    return weight_text(number) if abs(number) < 10 else with_minus(f"{number:.1f}")


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]
