"""Token facts that metrics need along rows and columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Token facts of some queries, and of all or the first keys.

    Attributes:
        counted: (row,).
        real: False for padding, (key,).
        special: without padding, (special,).
        first: the first key without padding.
        count: the text's keys without padding.
        before: preceding key, or patch to the left, −1 for none; likewise `after`.
        above: the patch above, −1 for none.
        following: the key after the last earlier equal token, −1 for none.
        duplicates: (row, key) of earlier equal tokens.
        alike: whether queries and keys are one text.
        places: (key, row and column), NaN for none; None without a picture.
        apart: which pairs have no distance, since one of them is a slot.
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
    apart: Bool[Tensor, "row key"] | Bool[Tensor, ""] = field(default_factory=lambda: torch.tensor(False))

    @classmethod
    def of(cls, queries: Tokens, keys: Tokens, *, alike: bool, positions: Sequence[int] | None = None) -> "QueryRows":
        """Collect the facts of the tokens along the two axes."""
        # In numpy, which needs a third of torch's time for arrays as small as most of these are.
        chosen = numpy.arange(len(queries)) if positions is None else numpy.array(positions, dtype=numpy.int64)
        counted = numpy.zeros(len(queries), dtype=bool)
        counted[list(queries.counted)] = True
        real = ~numpy.array(keys.padding, dtype=bool)
        before, after, above, following = numpy.full((4, len(chosen)), -1)
        duplicates = numpy.zeros((0, 2), dtype=numpy.int64)
        if alike:
            # Spans, or an encoder's keys, may follow a text's own.
            own = real[: len(queries)]
            before, after = (_neighbours(queries, chosen, step, own) for step in (-1, 1))
            above = _patches_beside(queries, chosen, (-1, 0)) if queries.placed else above
        if alike and queries.ids is not None:
            ids, columns = numpy.array(queries.ids), numpy.arange(len(queries))
            same = (ids[chosen, None] == ids) & (chosen[:, None] > columns) & real[: len(queries)]
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
            apart=_apart(queries, keys, chosen, alike=alike),
        )

    @once
    def distance(self) -> Float[Tensor, "row key"]:
        """Return |query − key| in tokens, or patches; NaN for non-patches in an image."""
        if self.places is not None:
            return (self.places[self.positions, None] - self.places).norm(dim=-1)
        found = (self.positions[:, None] - torch.arange(len(self.real))).abs().float()
        return found.masked_fill(self.apart, torch.nan)

    @property
    def itself(self) -> Int[Tensor, " row"]:
        """Return each query's own key; −1 in cross-attention."""
        return self.positions if self.alike else torch.full_like(self.positions, -1)

    def weight_at(
        self, weights: Float[Tensor, "*head row key"], keys: Int[Tensor, " row"]
    ) -> Float[Tensor, "*head row"]:
        """Return each query's weight on one key; NaN without one, 0 if cut off."""
        return self.at(lambda rows, keys: weights[..., rows, keys], weights.shape, keys)

    def at(
        self,
        weight: Callable[[Tensor, Tensor], Float[Tensor, "*head row"]],
        shape: Sequence[int],
        keys: Int[Tensor, " row"],
    ) -> Float[Tensor, "*head row"]:
        """Return weights as `weight_at`, from a partial matrix."""
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
        """Sum over each query's earlier equal tokens; NaN without any."""
        having = self.duplicates[:, 0]
        sums = numbers.new_full((*numbers.shape[:-1], len(self.positions)), torch.nan)
        sums[..., having] = 0
        return sums.index_add(-1, having[some], numbers)


def _apart(
    queries: Tokens, keys: Tokens, chosen: "NDArray[Any]", *, alike: bool
) -> Bool[Tensor, "row key"] | Bool[Tensor, ""]:
    """Return the pairs with a slot, because slots have no order, or with another text's token after the own ones."""
    others = alike and len(keys) > len(queries)
    if not any(queries.slots) and not any(keys.slots) and not others:
        return torch.tensor(False)
    rows, columns = ([slot is not None for slot in tokens.slots] for tokens in (queries, keys))
    columns = [one or (others and at >= len(queries)) for at, one in enumerate(columns)]
    return torch.from_numpy(numpy.array(rows)[chosen, None] | numpy.array(columns))


def _places(tokens: Tokens) -> Float[Tensor, "key axis"] | None:
    """None for text or sound."""
    if not tokens.patches:
        return None
    none = (torch.nan, torch.nan)
    return torch.tensor([tokens.patches.get(at, none) for at in range(len(tokens))], dtype=torch.float32)


def _neighbours(tokens: Tokens, chosen: "NDArray[Any]", step: int, real: "NDArray[Any]") -> "NDArray[Any]":
    if tokens.patches:
        return _patches_beside(tokens, chosen, (0, step))
    places = chosen + step
    if any(tokens.slots):  # these have no order
        real = real & numpy.array([slot is None for slot in tokens.slots])
        places = numpy.where(real[chosen.clip(0, len(real) - 1)], places, -1)
    if tokens.frames:  # a frame's neighbour is a frame, and no special position
        real = real & numpy.array([at in tokens.frames for at in range(len(tokens))])
    inside = (places >= 0) & (places < len(real))
    return numpy.where(inside & real[places.clip(0, len(real) - 1)], places, -1)


def _patches_beside(tokens: Tokens, chosen: "NDArray[Any]", step: tuple[int, int]) -> "NDArray[Any]":
    """−1 if none."""
    found = {place: number for number, place in tokens.patches.items()}
    places = [tokens.patches.get(number) for number in chosen.tolist()]
    beside = [None if place is None else (place[0] + step[0], place[1] + step[1]) for place in places]
    return numpy.array([-1 if place is None else found.get(place, -1) for place in beside], dtype=numpy.int64)
