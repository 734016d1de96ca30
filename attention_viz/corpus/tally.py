"""Sums of texts: all that is kept.

Added by text, then chunk, in corpus order in float64: any worker gives equal bits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.metrics import METRICS, metrics_in
from attention_viz.analysis.roles import EVEN, ROLES, SHARES
from attention_viz.corpus.kinds import KINDS
from attention_viz.corpus.one_text import Found, OneText

if TYPE_CHECKING:
    from numpy.typing import NDArray

# So many of the strongest examples are kept of each head and metric.
STRONGEST = 8
# So many texts are kept by lot at most, and so many numbers of theirs.
_SAMPLE, _NUMBERS = 1_000, 2**21
_THRESHOLDS = numpy.array([ROLES[name].threshold for name in SHARES])[:, None]


def sample_size(heads: int) -> int:
    """Return the size of the random sample of texts, from the number of heads."""
    return max(1, min(_SAMPLE, _NUMBERS // (heads * len(metrics_in("softmax")))))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Examples: strongest (metric, head, rank); sample (text, metric, head).

    Attributes:
        text: text number; −1 if none.
        value: the query's metric; −∞ if none.
        key: its heaviest key's position.
        pair: both token ids, on an extra last axis.
    """

    text: "NDArray[Any]"
    value: "NDArray[Any]"
    query: "NDArray[Any]"
    key: "NDArray[Any]"
    weight: "NDArray[Any]"
    pair: "NDArray[Any]"

    def taken(self, order: "NDArray[Any]") -> "Chosen":
        """Take some places along the last axis."""
        chosen = {one.name: numpy.take_along_axis(getattr(self, one.name), order, axis=2) for one in fields(self)[:-1]}
        return Chosen(**chosen, pair=numpy.take_along_axis(self.pair, order[..., None], axis=2))

    def beside(self, other: "Chosen") -> "Chosen":
        """Concatenate with others."""
        both = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return Chosen(**{name: numpy.concatenate(two, axis=2) for name, two in both.items()})

    def strongest(self) -> "Chosen":
        """Keep the largest, earlier texts first in ties, one per token pair."""
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
    """Sums of texts; arrays are (metric, head) by default.

    Attributes:
        count: texts with the metric.
        mean: texts count alike.
        away: sum of squared deviations.
        squares: sum of squared standard errors.
        role_count: testable texts, (role, head).
        role_holds: of these, holding.
        weight: (head, query kind, key kind).
        expected: by chance.
        lot: rising draws, (text,).
        sample: text numbers, (text,).
        sample_mean: (text, metric, head).
        sample_found: stacked `Found`, (4, text, metric, head).
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
        """Return an empty tally for a number of heads."""
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
        """Sum one chunk."""
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
        """Add later texts; means and spreads after Chan, Golub and LeVeque 1979, "Updating Formulae"."""
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
        """Return texts of examples and of the random sample."""
        found = {*numpy.unique(self.strongest.text).tolist(), *self.sample.tolist()}
        return frozenset(found - {-1})

    def arrays(self) -> dict[str, "NDArray[Any]"]:
        """Return all arrays by name, for a file."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "strongest"}
        return {**own, **{f"strongest.{one.name}": getattr(self.strongest, one.name) for one in fields(Chosen)}}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, "NDArray[Any]"]) -> "Tally":
        """Read `arrays`."""
        chosen = Chosen(**{one.name: arrays[f"strongest.{one.name}"] for one in fields(Chosen)})
        own = {name: array for name, array in arrays.items() if "." not in name}
        return cls(**own, strongest=chosen)


def _held(shares: "NDArray[Any]") -> "NDArray[Any]":
    """Compare (text, role, head); even rows hold no job."""
    jobs = numpy.array([ROLES[name].job for name in SHARES])[:, None]
    even = shares[:, list(SHARES).index("broad"), None] >= EVEN
    return (shares >= _THRESHOLDS) & ~(jobs & even)


def _sum(arrays: "Iterable[NDArray[Any]]") -> "NDArray[Any]":
    """Keep the order, which changes the last bits."""
    total = None
    for array in arrays:
        total = array.copy() if total is None else total + array
    assert total is not None
    return total


def lots(numbers: Sequence[int]) -> "NDArray[Any]":
    """Draw a fixed number per text; the smallest are kept."""
    with numpy.errstate(over="ignore"):
        mixed = (numpy.array(numbers, numpy.uint64) + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> numpy.uint64(31))


def _chosen(numbers: Sequence[int], found: Sequence[Found]) -> Chosen:
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
