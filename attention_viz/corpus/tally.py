"""The sums of many texts: all that is kept of them, however many there are.

Sums are taken text by text in a chunk, and chunk by chunk in the order of the corpus, in float64: whoever computes a
chunk, and whenever, the bits are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import EVEN, ROLES, SHARES
from attention_viz.corpus.kinds import KINDS
from attention_viz.corpus.one_text import Found, OneText

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["STRONGEST", "Chosen", "Tally", "lots", "sample_size"]

# So many of the strongest examples are kept of each head and metric.
STRONGEST = 8
# So many texts are kept by lot at most, and so many numbers of theirs.
_SAMPLE, _NUMBERS = 1_000, 2**21
_THRESHOLDS = numpy.array([ROLES[name].threshold for name in SHARES])[:, None]


def sample_size(heads: int) -> int:
    """How many texts are kept by lot of a model with so many heads, for deciles and for examples from each of them."""
    return max(1, min(_SAMPLE, _NUMBERS // (heads * len(METRICS))))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Examples of each metric and head: (metric, head, rank) of the strongest, (text, metric, head) of the sample.

    Attributes:
        text: the number of each one's text; −1 where there is none.
        value: what its query has of the metric; −∞ where there is none.
        key: that of the key it looks at most.
        pair: the ids of both, with an axis more at the end.
    """

    text: "NDArray[Any]"
    value: "NDArray[Any]"
    query: "NDArray[Any]"
    key: "NDArray[Any]"
    weight: "NDArray[Any]"
    pair: "NDArray[Any]"

    def taken(self, order: "NDArray[Any]") -> "Chosen":
        """Those at some places along the last axis."""
        chosen = {one.name: numpy.take_along_axis(getattr(self, one.name), order, axis=2) for one in fields(self)[:-1]}
        return Chosen(**chosen, pair=numpy.take_along_axis(self.pair, order[..., None], axis=2))

    def beside(self, other: "Chosen") -> "Chosen":
        """These and others."""
        both = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return Chosen(**{name: numpy.concatenate(two, axis=2) for name, two in both.items()})

    def strongest(self) -> "Chosen":
        """Those with the largest values, the earlier text first among equals, of each pair of tokens the strongest."""
        # By text first: the second sort keeps that order among equal values.
        one = self.taken(numpy.argsort(self.text, axis=2, kind="stable"))
        one = one.taken(numpy.argsort(-one.value, axis=2, kind="stable"))
        first, second = one.pair[..., 0], one.pair[..., 1]
        same = (first[..., :, None] == first[..., None, :]) & (second[..., :, None] == second[..., None, :])
        again = (same & numpy.tri(same.shape[-1], k=-1, dtype=bool)).any(axis=-1) | ~numpy.isfinite(one.value)
        one = replace(one, text=numpy.where(again, -1, one.text), value=numpy.where(again, -numpy.inf, one.value))
        kept = one.taken(numpy.argsort(again, axis=2, kind="stable")[..., :STRONGEST])
        return replace(kept, pair=numpy.where((kept.text < 0)[..., None], -1, kept.pair))


@dataclass(frozen=True, eq=False)
class Tally:
    """What is kept of some texts; arrays are (metric, head) where nothing else is said.

    Attributes:
        count: how many have what a metric asks for.
        mean: their mean, each text counting alike.
        away: the sum of the squares of their distances from it.
        squares: the sum of the squares of the texts' standard errors.
        role_count: of each role and head, (role, head), how many texts can show it.
        role_holds: in how many it is held.
        weight: what queries of each kind give to keys of each, (head, query kind, key kind).
        expected: what they would give by chance.
        pairs: how many pairs of them there are.
        lot: of each text that is kept by lot its number in the draw, rising, (text,).
        sample: the number of the text, (text,).
        sample_mean: what it has of each metric, (text, metric, head).
        sample_found: its query with the most of it, that query's heaviest key, and what this gets, as `Found` has them,
            stacked: (4, text, metric, head).
    """

    texts: "NDArray[Any]"
    count: "NDArray[Any]"
    mean: "NDArray[Any]"
    away: "NDArray[Any]"
    queries: "NDArray[Any]"
    squares: "NDArray[Any]"
    role_count: "NDArray[Any]"
    role_sum: "NDArray[Any]"
    role_holds: "NDArray[Any]"
    weight: "NDArray[Any]"
    expected: "NDArray[Any]"
    pairs: "NDArray[Any]"
    strongest: Chosen
    lot: "NDArray[Any]"
    sample: "NDArray[Any]"
    sample_mean: "NDArray[Any]"
    sample_found: "NDArray[Any]"

    @classmethod
    def empty(cls, heads: int) -> "Tally":
        """Of no text, for so many heads."""
        metrics, kinds = len(METRICS), len(KINDS)
        numbers = {name: numpy.zeros((metrics, heads)) for name in ("mean", "away", "squares")}
        counts = {name: numpy.zeros((metrics, heads), dtype=numpy.int64) for name in ("count", "queries")}
        roles = {name: numpy.zeros((len(SHARES), heads), numpy.int64) for name in ("role_count", "role_holds")}
        looks = {name: numpy.zeros((heads, kinds, kinds)) for name in ("weight", "expected")}
        return cls(
            texts=numpy.zeros((), numpy.int64),
            **numbers,
            **counts,
            **roles,
            role_sum=numpy.zeros((len(SHARES), heads)),
            **looks,
            pairs=numpy.zeros((heads, kinds, kinds), numpy.int64),
            strongest=_nothing(metrics, heads),
            lot=numpy.zeros(0, numpy.uint64),
            sample=numpy.zeros(0, numpy.int64),
            sample_mean=numpy.zeros((0, metrics, heads), numpy.float32),
            sample_found=numpy.zeros((4, 0, metrics, heads), numpy.float32),
        )

    @classmethod
    def of(cls, numbers: Sequence[int], texts: Sequence[OneText]) -> "Tally":
        """Of one chunk."""
        means = numpy.stack([text.means for text in texts])
        count = (~numpy.isnan(means)).sum(axis=0)
        mean = numpy.where(count > 0, _sum(numpy.nan_to_num(means)) / numpy.maximum(count, 1), 0)
        shares = numpy.stack([text.shares for text in texts])
        lot = lots(numbers)
        order = numpy.argsort(lot, kind="stable")
        found = [text.found for text in texts]
        places = [numpy.stack([getattr(one, name) for one in found]) for name in ("value", "query", "key", "weight")]
        return cls(
            texts=numpy.array(len(texts), numpy.int64),
            count=count,
            mean=mean,
            away=_sum(numpy.nan_to_num(means - mean) ** 2),
            queries=_sum([text.queries for text in texts]),
            squares=_sum([text.squares for text in texts]),
            role_count=(~numpy.isnan(shares)).sum(axis=0),
            role_sum=_sum(numpy.nan_to_num(shares)),
            role_holds=_held(shares).sum(axis=0),
            weight=_sum([text.looks[0] for text in texts]),
            expected=_sum([text.looks[1] for text in texts]),
            pairs=_sum([text.looks[2] for text in texts]),
            strongest=_chosen(numbers, found).strongest(),
            lot=lot[order],
            sample=numpy.array(numbers, numpy.int64)[order],
            sample_mean=means.astype(numpy.float32)[order],
            sample_found=numpy.stack(places).astype(numpy.float32)[:, order],
        )

    def and_then(self, other: "Tally") -> "Tally":
        """With the texts that follow; of means and spreads after Chan, Golub and LeVeque 1979, "Updating Formulae"."""
        count = self.count + other.count
        step = numpy.where(count > 0, other.count / numpy.maximum(count, 1), 0)
        apart = other.mean - self.mean
        summed = ("texts", "queries", "squares", "role_count", "role_sum", "role_holds", "weight", "expected", "pairs")
        lot = numpy.concatenate([self.lot, other.lot])
        kept = numpy.argsort(lot, kind="stable")[: sample_size(self.mean.shape[1])]
        return Tally(
            count=count,
            mean=self.mean + apart * step,
            away=self.away + other.away + apart**2 * self.count * step,
            strongest=self.strongest.beside(other.strongest).strongest(),
            lot=lot[kept],
            sample=numpy.concatenate([self.sample, other.sample])[kept],
            sample_mean=numpy.concatenate([self.sample_mean, other.sample_mean])[kept],
            sample_found=numpy.concatenate([self.sample_found, other.sample_found], axis=1)[:, kept],
            **{name: getattr(self, name) + getattr(other, name) for name in summed},
        )

    @property
    def referred(self) -> frozenset[int]:
        """The texts that examples are of, and those kept by lot."""
        found = {*numpy.unique(self.strongest.text).tolist(), *self.sample.tolist()}
        return frozenset(found - {-1})

    def arrays(self) -> dict[str, "NDArray[Any]"]:
        """All of it by name, for a file."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "strongest"}
        return {**own, **{f"strongest.{one.name}": getattr(self.strongest, one.name) for one in fields(Chosen)}}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, "NDArray[Any]"]) -> "Tally":
        """What `arrays` gave."""
        chosen = Chosen(**{one.name: arrays[f"strongest.{one.name}"] for one in fields(Chosen)})
        own = {name: array for name, array in arrays.items() if "." not in name}
        return cls(**own, strongest=chosen)


def _held(shares: "NDArray[Any]") -> "NDArray[Any]":
    """Where a text's share of a role, (text, role, head), reaches its threshold; of jobs not where rows are even."""
    jobs = numpy.array([ROLES[name].job for name in SHARES])[:, None]
    even = shares[:, list(SHARES).index("broad"), None] >= EVEN
    return (shares >= _THRESHOLDS) & ~(jobs & even)


def _sum(arrays: "Iterable[NDArray[Any]]") -> "NDArray[Any]":
    """Summed in their order, whose last bits another order would change."""
    total = None
    for array in arrays:
        total = array.copy() if total is None else total + array
    assert total is not None
    return total


def lots(numbers: Sequence[int]) -> "NDArray[Any]":
    """A number by lot for each text, always the same; those with the smallest are kept."""
    with numpy.errstate(over="ignore"):
        mixed = (numpy.array(numbers, numpy.uint64) + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> numpy.uint64(31))


def _chosen(numbers: Sequence[int], found: Sequence[Found]) -> Chosen:
    """The best of each text, side by side."""
    stacked = {
        name: numpy.stack([getattr(one, name) for one in found], axis=2)
        for name in ("value", "query", "key", "weight", "pair")
    }
    text = numpy.broadcast_to(numpy.array(numbers, numpy.int64), stacked["value"].shape)
    return Chosen(text=text, **stacked)


def _nothing(metrics: int, heads: int) -> Chosen:
    shape = (metrics, heads, 0)
    whole = {name: numpy.zeros(shape, numpy.int64) for name in ("text", "query", "key")}
    return Chosen(
        **whole,
        value=numpy.zeros(shape),
        weight=numpy.zeros(shape, numpy.float32),
        pair=numpy.zeros((*shape, 2), numpy.int64),
    )
