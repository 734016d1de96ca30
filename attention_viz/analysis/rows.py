"""What a metric needs to know of the tokens along the rows and columns of weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QueryRows"]


@dataclass(frozen=True, eq=False)
class QueryRows:
    """What a metric needs to know of the tokens: of some queries, and of the first keys of a text or of all.

    Attributes:
        counted: True for those that count, (row,).
        real: True for keys that aren't padding, (key,).
        special: the keys that the tokenizer calls special and that aren't padding, (special,).
        first: the first key of the text that isn't padding.
        count: how many keys of the whole text aren't padding.
        before: for each query the key one before it, −1 where there is none; of a picture's patch the one to its left;
            likewise `after`.
        above: for each query the patch above it in a picture, −1 where there is none, as in a text.
        following: for each query the key after the most recent earlier token of its kind, −1 where there is none.
        duplicates: where a key is an earlier token of the query's kind, one (row, key) a line.
        alike: whether queries and keys are the same text.
        places: where each key stands in a picture, (key, row and column), NaN for one without a place; None elsewhere.
    """

    positions: Int[Tensor, " row"]
    counted: Bool[Tensor, " row"]
    real: Bool[Tensor, " key"]
    special: Int[Tensor, " special"]
    first: int
    count: int
    before: Int[Tensor, " row"]
    after: Int[Tensor, " row"]
    above: Int[Tensor, " row"]
    following: Int[Tensor, " row"]
    duplicates: Int[Tensor, "pair 2"]
    alike: bool
    places: Float[Tensor, "key axis"] | None = None

    @classmethod
    def of(cls, queries: Tokens, keys: Tokens, *, alike: bool, positions: Sequence[int] | None = None) -> "QueryRows":
        """Of the tokens along the two axes."""
        # In numpy, which needs a third of torch's time for arrays as small as most of these are.
        chosen = numpy.arange(len(queries)) if positions is None else numpy.array(positions, dtype=numpy.int64)
        counted = numpy.zeros(len(queries), dtype=bool)
        counted[list(queries.counted)] = True
        real = ~numpy.array(keys.padding, dtype=bool)
        before, after, above, following = numpy.full((4, len(chosen)), -1)
        duplicates = numpy.zeros((0, 2), dtype=numpy.int64)
        if alike:
            before, after = (_neighbours(queries, chosen, step, real) for step in (-1, 1))
            above = _patches_beside(queries, chosen, (-1, 0)) if queries.placed else above
        if alike and queries.ids is not None:
            ids, columns = numpy.array(queries.ids), numpy.arange(len(keys))
            same = (ids[chosen, None] == ids) & (chosen[:, None] > columns) & real
            duplicates = numpy.argwhere(same)
            # The lines of a row stand together, in the order of the keys: the last one stays.
            following[duplicates[:, 0]] = duplicates[:, 1] + 1
        (places,) = real.nonzero()
        (special,) = (numpy.array(keys.special, dtype=bool) & real).nonzero()
        return cls(
            positions=torch.from_numpy(chosen),
            counted=torch.from_numpy(counted[chosen]),
            real=torch.from_numpy(real),
            special=torch.from_numpy(special),
            first=int(places[0]) if len(places) else 0,
            count=len(places),
            before=torch.from_numpy(before),
            after=torch.from_numpy(after),
            above=torch.from_numpy(above),
            following=torch.from_numpy(following),
            duplicates=torch.from_numpy(duplicates),
            alike=alike,
            places=_places(queries) if alike else None,
        )

    @once
    def distance(self) -> Float[Tensor, "row key"]:
        """|query − key| in tokens; in a picture that of their patches, in patches, NaN where one of them is none."""
        if self.places is not None:
            return (self.places[self.positions, None] - self.places).norm(dim=-1)
        return (self.positions[:, None] - torch.arange(len(self.real))).abs().float()

    @property
    def itself(self) -> Int[Tensor, " row"]:
        """For each query the key that is the same token; −1 where the keys are another text's."""
        return self.positions if self.alike else torch.full_like(self.positions, -1)

    def weight_at(
        self, weights: Float[Tensor, "*head row key"], keys: Int[Tensor, " row"]
    ) -> Float[Tensor, "*head row"]:
        """The weight on one key a query; NaN where a query has none. Keys left out of the weights have none."""
        return self.at(lambda rows, keys: weights[..., rows, keys], weights.shape, keys)

    def at(
        self,
        weight: Callable[[Tensor, Tensor], Float[Tensor, "*head row"]],
        shape: Sequence[int],
        keys: Int[Tensor, " row"],
    ) -> Float[Tensor, "*head row"]:
        """As `weight_at`, of weights that needn't all be there."""
        # As in `of`, what is asked of a few numbers is asked of numpy.
        places = keys.numpy()
        has, inside = places >= 0, places < shape[-1]
        if not has.any():
            return torch.full(tuple(shape[:-1]), torch.nan)
        found = weight(torch.arange(len(keys)), torch.from_numpy(numpy.where(has & inside, places, 0)))
        found = found if inside.all() else found.where(torch.from_numpy(inside), 0)
        return found if has.all() else found.where(torch.from_numpy(has), torch.nan)

    def over_duplicates(
        self, numbers: Float[Tensor, "*head pair"], some: Bool[Tensor, " duplicate"]
    ) -> Float[Tensor, "*head row"]:
        """Each query's sum of some numbers over earlier tokens of its kind; NaN where it has none."""
        having = self.duplicates[:, 0]
        sums = numbers.new_full((*numbers.shape[:-1], len(self.positions)), torch.nan)
        sums[..., having] = 0
        return sums.index_add(-1, having[some], numbers)


def _places(tokens: Tokens) -> Float[Tensor, "key axis"] | None:
    """Where patches stand; None of a text, or of a sound, whose frames come one after the other as words do."""
    sizes = {len(place) for place in tokens.place if place is not None}
    if not sizes or max(sizes) < 2:
        return None
    none = (torch.nan,) * max(sizes)
    return torch.tensor([none if place is None else place for place in tokens.place])


def _neighbours(tokens: Tokens, chosen: "NDArray[Any]", step: int, real: "NDArray[Any]") -> "NDArray[Any]":
    """The key one before or after each query; of a patch the one beside it in its row."""
    if _places(tokens) is not None:
        return _patches_beside(tokens, chosen, (0, step))
    places = chosen + step
    if tokens.placed:  # a frame's neighbour is a frame, and no special position
        real = real & numpy.array([place is not None for place in tokens.place])
    inside = (places >= 0) & (places < len(real))
    return numpy.where(inside & real[places.clip(0, len(real) - 1)], places, -1)


def _patches_beside(tokens: Tokens, chosen: "NDArray[Any]", step: tuple[int, int]) -> "NDArray[Any]":
    """The key so many rows and columns away from each query in a picture; −1 where there is none, as in a text."""
    placed = ((place, number) for number, place in enumerate(tokens.place) if place is not None and len(place) > 1)
    found = {(row, column): number for (row, column, *_), number in placed}
    places = [tokens.place[number] for number in chosen.tolist()]
    grid = [None if place is None or len(place) < 2 else (place[0] + step[0], place[1] + step[1]) for place in places]
    return numpy.array([-1 if place is None else found.get(place, -1) for place in grid], dtype=numpy.int64)
