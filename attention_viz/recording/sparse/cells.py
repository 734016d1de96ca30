"""Finds the cells of a turn's softmaxes, by one-hot values and numbered softmaxes.

One-hot values show the value that each column of a softmax multiplies, and its row of the output. So no layout is
assumed: chunks, windows, blocks, buckets and paddings are all found.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.interception.following import Soften
from attention_viz.recording.recorder import BLOCKED_BELOW
from attention_viz.recording.sparse.turn import Turn, TurnRun

# How far a number read from an output may be from a whole number.
_WHOLE = 0.2
# How often a row may have a key, as BigBird's rows have the first block.
_MOST_TIMES = 15
# Values are looked through in parts of so many heads' widths.
_COARSE = 8


@dataclass(frozen=True, eq=False)
class Cells:
    """The place of each cell in a module's softmaxes; −1 if it has none.

    Attributes:
        rows: counted over all softmaxes.
        columns: within a row; one of several if a row has a key several times.
        times: how often a row has a key.
        width: of a head's values.
    """

    rows: Int[Tensor, "head query"]
    columns: Int[Tensor, "head query key"]
    times: Int[Tensor, "head query key"]
    width: int

    def at(self, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"]) -> "Cells":
        """Return the cells of some rows of the output and some values."""
        columns, times = (one[:, queries][..., keys] for one in (self.columns, self.times))
        return Cells(self.rows[:, queries], columns, times, self.width)

    @property
    def live(self) -> Bool[Tensor, "head query key"]:
        """The cells that the model attends over."""
        return (self.columns >= 0) & (self.rows >= 0)[..., None]

    def dense(self, softmaxes: Sequence[Tensor]) -> Float[Tensor, "head query key"]:
        """Return numbers of softmaxes as a matrix of queries by keys, 0 without a cell."""
        found, live, start = softmaxes[0].new_zeros(self.columns.shape), self.live, 0
        rows = self.rows[..., None].expand_as(self.columns)
        for one in softmaxes:
            flat = one.reshape(-1, one.shape[-1])
            here = live & (rows >= start) & (rows < start + len(flat))
            found = found.masked_scatter(here, flat[rows[here] - start, self.columns[here]].to(found.dtype))
            start += len(flat)
        return found

    def joined(self, context: Float[Tensor, "query all"]) -> Float[Tensor, "head query width"]:
        """Split joined heads."""
        return context.reshape(len(context), -1, self.width).transpose(0, 1)


def cells_of(turn: Turn, first: TurnRun) -> Cells:
    """Find each cell of tokens by tokens, by one-hot values and numbered softmaxes.

    Each module that makes values has heads of its own.
    """
    live = [_live(logits) for logits in first.logits.values()]
    starts = [sum(one.shape[:-1].numel() for one in live[:place]) for place in range(len(live))]

    def numbered(place: int, logits: Tensor, _compute: Callable[[Tensor], Tensor]) -> Tensor:
        here = live[place]
        counted = torch.arange(here.shape[:-1].numel(), device=logits.device).reshape(*here.shape[:-1], 1)
        shares = (1 + starts[place] + counted).to(logits) / here.sum(-1, keepdim=True).clamp_min(1)
        return torch.where(here, shares, 0).to(first.weights[place].dtype)

    ones = {path: torch.ones_like(value) for path, value in first.values.items()}
    head = _head_width(turn, whole(turn, turn.run(values=ones, soften=numbered).context))
    rows, columns, times = list[Tensor](), list[Tensor](), list[Tensor]()
    for path, value in first.values.items():
        own = _alone(first, path, torch.ones_like(value))
        numbers = whole(turn, turn.run(values=own, soften=numbered).context)
        rows.append(numbers.reshape(len(numbers), -1, head)[..., 0].T - 1)
        one, counts = _columns(turn, first, path, head, live)
        columns.append(one)
        times.append(counts)
    return Cells(torch.cat(rows), torch.cat(columns), torch.cat(times), head)


def _columns(
    turn: Turn, first: TurnRun, path: str, head: int, live: Sequence[Tensor]
) -> tuple[Int[Tensor, "head query key"], Int[Tensor, "head query key"]]:
    """Return a column of each cell, and how many it has.

    A column's weight is `unit` plus its number. If a cell has several, only those with a bit are weighed, or without,
    until one is alone.
    """
    most = max(one.shape[-1] for one in live)
    unit = 1 << (_MOST_TIMES * most).bit_length()

    def weighed(bit: int, value: int) -> Soften:
        shares = list[Tensor]()
        for place, one in enumerate(live):
            numbers = torch.arange(1, one.shape[-1] + 1, device=one.device)
            some = one if bit < 0 else one & ((numbers >> bit & 1) == value)
            shares.append((some * (unit + numbers)).to(first.weights[place].dtype))
        return lambda place, _logits, _compute: shares[place].clone()

    every = weighed(-1, 0)
    found = whole(turn, by_one_hot(turn, first, path, head, every, _attended(turn, first, path, head, every)))
    times, columns = found // unit, found % unit - 1
    several = times > 1
    for bit, value in itertools.product(range(most.bit_length()), (0, 1)):
        if not bool(several.any()):
            break
        found = whole(turn, by_one_hot(turn, first, path, head, weighed(bit, value), several.any(0).any(0)))
        alone = several & (found // unit == 1)
        columns, several = torch.where(alone, found % unit - 1, columns), several & ~alone
    if bool(several.any()) or int(times.max()) > _MOST_TIMES:
        raise UnsupportedModel(f"{turn.name} attends to a token {int(times.max())} times in one row")
    return columns, times


def _attended(turn: Turn, first: TurnRun, path: str, head: int, soften: Soften) -> Bool[Tensor, " key"]:
    """Return which values may matter: with a short text in a long block, few do."""
    value = first.values[path]
    found = torch.zeros(len(value), dtype=torch.bool)

    def look(start: int, stop: int) -> None:
        if len(value) > _COARSE * head:
            ones = torch.zeros_like(value)
            ones[start:stop] = 1
            if not bool(turn.run(values=_alone(first, path, ones), soften=soften).context.any()):
                return
        if stop - start <= _COARSE * head:
            found[start:stop] = True
            return
        middle = (start + stop) // 2
        look(start, middle)
        look(middle, stop)

    look(0, len(value))
    return found


def by_one_hot(
    turn: Turn, first: TurnRun, path: str, head: int, soften: Soften, wanted: Bool[Tensor, " key"] | None = None
) -> Float[Tensor, "head query key"]:
    """Return the share of each of a module's values in each row of the output, by one-hot values.

    Args:
        wanted: the values that matter; the others may get zeros.
    """
    value, found = first.values[path], list[Tensor]()
    heads = value.shape[1] // head
    for start in range(0, len(value), head):
        if wanted is not None and not bool(wanted[start : start + head].any()):
            found.append(value.new_zeros(heads, len(first.context), head))
            continue
        hot = value.new_zeros(len(value), heads, head)
        for column in range(min(head, len(value) - start)):
            hot[start + column, :, column] = 1
        context = turn.run(values=_alone(first, path, hot.flatten(1)), soften=soften).context
        found.append(context.reshape(-1, heads, head).transpose(0, 1))
    return torch.cat(found, dim=-1)[..., : len(value)]


def _alone(first: TurnRun, path: str, value: Tensor) -> dict[str, Tensor]:
    """Return values for one module, and zeros for the others."""
    return {one: value if one == path else torch.zeros_like(other) for one, other in first.values.items()}


def _live(logits: Tensor) -> Tensor:
    """Return which cells of a softmax aren't blocked: masks are low numbers.

    A row with several equally low cells is padding: it attends to nothing.
    """
    top = logits.amax(-1, keepdim=True)
    live = logits > top + BLOCKED_BELOW
    return live & ((top > BLOCKED_BELOW) | (live.sum(-1, keepdim=True) == 1))


def whole(turn: Turn, numbers: Tensor) -> Tensor:
    """Return whole numbers, or refuse."""
    found = numbers.round()
    if not float((numbers - found).abs().max()) < _WHOLE:
        raise UnsupportedModel(f"{turn.name} mixes several softmaxes in one row, or scales their sum")
    return found.long()


def _head_width(turn: Turn, rows: Tensor) -> int:
    """Return the width of a head: columns whose rows belong to the same softmax."""
    changes = (rows[:, 1:] != rows[:, :-1]).any(0).nonzero().flatten()
    head = rows.shape[1] if not len(changes) else int(changes[0]) + 1
    steps = torch.arange(head - 1, rows.shape[1] - 1, head, device=rows.device)
    if rows.shape[1] % head or not torch.equal(changes, steps):
        raise UnsupportedModel(f"{turn.name}'s heads aren't of one width, one after the other")
    return head
