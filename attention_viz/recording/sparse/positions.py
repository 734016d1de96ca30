"""Finds which rows of a turn are the text's tokens, and which are slots: global tokens, summaries, predictions.

Some rows of the module's input change at a time. What changes with them shows the row that each query, key and value
is of. So no order is assumed. Each row has its own choice of runs to change in, all of one size: two rows' together
are larger.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.sparse.cells import Cells
from attention_viz.recording.sparse.operands import operands_of, rows_of
from attention_viz.recording.sparse.turn import Turn, TurnRun, held

# The origin of what no row moves, of what several move, and of a row that no cell shows.
NONE, SEVERAL, UNKNOWN = -1, -2, -3


@dataclass(frozen=True)
class Positions:
    """The shown rows of a turn: the text's tokens, then its slots.

    Attributes:
        queries: of the output.
        keys: of the values.
        summaries: whether slots are made of several positions.
    """

    queries: tuple[range, range]
    keys: tuple[range, range]
    summaries: bool = False

    @property
    def rows(self) -> Int[Tensor, " query"]:
        """The shown rows of the output."""
        return torch.tensor([*itertools.chain(*self.queries)])

    @property
    def columns(self) -> Int[Tensor, " key"]:
        """The shown values."""
        return torch.tensor([*itertools.chain(*self.keys)])


def positions_of(turn: Turn, first: TurnRun, cells: Cells, count: int) -> Positions:
    """Return a turn's positions, once per number of tokens: they don't depend on numbers."""
    known, sizes = turn.site.known, (turn.number, count, len(first.context), cells.columns.shape[-1])
    if sizes not in known:
        known[sizes] = _found(turn, first, cells, count)
    return known[sizes]


def codewords(count: int) -> Bool[Tensor, "run row"]:
    """Return for each run the rows that change in it: no row's runs are all among another's."""
    runs = next(runs for runs in itertools.count(2) if math.comb(runs, runs // 2) >= count)
    chosen = itertools.islice(itertools.combinations(range(runs), runs // 2), count)
    found = torch.zeros(runs, count, dtype=torch.bool)
    for row, own in enumerate(chosen):
        found[list(own), row] = True
    return found


def origins(count: int, changed: Callable[[Bool[Tensor, " row"]], Sequence[Tensor]]) -> list[Int[Tensor, " made"]]:
    """Return the row that moves each of several tensors' rows; NONE or SEVERAL if it isn't one.

    Args:
        count: of the rows that move.
        changed: moves some rows, and returns which rows of each tensor changed.
    """
    words = codewords(count)
    runs = [changed(word) for word in words]
    weights = 2 ** torch.arange(len(words))
    names = {int(name): row for row, name in enumerate((words * weights[:, None]).sum(0))} | {0: NONE}
    found = list[Tensor]()
    for several in zip(*runs, strict=True):
        codes = (torch.stack(several).cpu() * weights[:, None]).sum(0)
        found.append(torch.tensor([names.get(code, SEVERAL) for code in codes.tolist()], dtype=torch.long))
    return found


def changed_rows(before: Tensor, after: Tensor) -> Bool[Tensor, " row"]:
    """Return which rows differ, bit by bit."""
    return (before != after).flatten(0, -2).any(-1)


def _found(turn: Turn, first: TurnRun, cells: Cells, count: int) -> Positions:
    operands = operands_of(turn, first, cells)
    before = (*rows_of(first, operands.products), *first.values.values())

    def changed(rows: Bool[Tensor, " row"]) -> list[Tensor]:
        run = turn.moved(rows).run(soften=held(first), like=first)
        after = (*rows_of(run, operands.products), *run.values.values())
        return [changed_rows(*both) for both in zip(before, after, strict=True)]

    left, right, *values = origins(sum(one.shape[1] for one in turn.rows), changed)
    if any(not torch.equal(one, values[0]) for one in values):
        raise UnsupportedModel(f"{turn.name}'s values come from different positions")
    queries, keys = (_shown(of, index) for of, index in ((left, operands.query), (right, operands.key)))
    if not bool(((keys == UNKNOWN) | (keys == values[0])).all()):
        raise UnsupportedModel(f"{turn.name} has keys and values of different positions in one cell")
    return _named(turn, _in_order(turn, first, queries), values[0], count)


def _shown(of: Int[Tensor, " operand"], index: Int[Tensor, "head row"]) -> Int[Tensor, " row"]:
    """Return the origin of each row by its operand; SEVERAL if heads differ."""
    found = torch.where(index.cpu() >= 0, of[index.cpu().clamp_min(0)], UNKNOWN)
    top = found.amax(0)
    return torch.where(((found == top) | (found == UNKNOWN)).all(0), top, SEVERAL)


def _in_order(turn: Turn, first: TurnRun, found: Int[Tensor, " query"]) -> Int[Tensor, " query"]:
    """Return the origins of all output rows; in each part they go up by one, so known ones show the others."""
    parts, start = list[Tensor](), 0
    for count in (one.shape[:-1].numel() for one in first.contexts):
        rows, known = torch.arange(count), found[start : start + count]
        shifts = (known - rows)[known != UNKNOWN].unique()
        if len(shifts) > 1 or bool((known[known != UNKNOWN] < 0).any()) or (not len(shifts) and len(found) > count):
            raise UnsupportedModel(f"{turn.name}'s output rows aren't its positions in order")
        parts.append(rows + (int(shifts[0]) if len(shifts) else 0))
        start += count
    return torch.cat(parts)


def _named(turn: Turn, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"], count: int) -> Positions:
    """Return where tokens and slots are, by the origins of output rows and values."""
    inputs, (own, *_) = [one.shape[1] for one in turn.rows], turn.rows
    tokens = range(turn.start, turn.start + count)
    if tokens.stop > own.shape[1]:
        raise UnsupportedModel(f"{turn.name} reads {own.shape[1]} positions, but the text has {count} tokens")
    summaries = bool((keys == SEVERAL).any())
    slots = [*range(inputs[0], sum(inputs))]
    if turn.site.rest:
        slots = [one for one in range(sum(inputs)) if one not in tokens]
    of_keys = keys == SEVERAL if summaries else torch.isin(keys, torch.tensor(slots, dtype=torch.long))
    of_queries = torch.isin(queries, torch.tensor(slots, dtype=torch.long))
    if summaries and bool(of_queries.any()):
        raise UnsupportedModel(f"{turn.name} has both summaries and tokens of its own")
    rows, columns = (_range(turn, one, tokens) for one in (queries, keys))
    own_rows, own_columns = (_together(turn, one) for one in (of_queries, of_keys))
    if len(own_rows) and queries[[*own_rows]].tolist() != keys[[*own_columns]].tolist():
        raise UnsupportedModel(f"{turn.name}'s own tokens have other rows than columns")
    return Positions((rows, own_rows), (columns, own_columns), summaries)


def _range(turn: Turn, origins: Int[Tensor, " row"], tokens: range) -> range:
    """Return the rows of the text's tokens, which must be in order."""
    at = (origins == tokens.start).nonzero().flatten().tolist()
    if len(at) != 1 or origins[at[0] : at[0] + len(tokens)].tolist() != [*tokens]:
        raise UnsupportedModel(f"{turn.name}'s rows aren't the text's tokens in order")
    return range(at[0], at[0] + len(tokens))


def _together(turn: Turn, found: Bool[Tensor, " row"]) -> range:
    at = found.nonzero().flatten().tolist()
    if at and at != [*range(at[0], at[-1] + 1)]:
        raise UnsupportedModel(f"{turn.name}'s own tokens aren't together")
    return range(at[0], at[-1] + 1) if at else range(0)
