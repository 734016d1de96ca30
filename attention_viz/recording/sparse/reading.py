"""Reads a turn's sparse attention as a matrix of tokens by tokens and slots, in the module's own numbers.

The module runs a few times with its softmaxes' outputs, its values or its input rows replaced: see `cells`, `operands`
and `positions`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, attend
from attention_viz.recording.sparse.cells import Cells, by_one_hot, cells_of
from attention_viz.recording.sparse.operands import bias_of, operands_of
from attention_viz.recording.sparse.positions import Positions, positions_of
from attention_viz.recording.sparse.turn import Turn, TurnRun, held


@dataclass(frozen=True, eq=False)
class Reading:
    """A turn's attention over its positions.

    Attributes:
        attention: (head, query, …).
        live: the cells that the model attends over.
        first: the turn's plain run.
    """

    attention: Attention
    live: Bool[Tensor, "head query key"]
    first: TurnRun
    positions: Positions

    def context_of(self, output: Float[Tensor, "head query width"]) -> Tensor:
        """Return the turn's joined outputs with the shown rows replaced."""
        own, rows = self.first.context.clone(), self.positions.rows.to(output.device)
        joined = _summed(output, own.shape[-1]).transpose(0, 1).flatten(1)
        # Rows that attend to nothing are padding, and stay the model's own.
        some = self.live.any(-1).any(0)
        own[rows[some]] = joined[some].to(own.dtype)
        return own


def read(turn: Turn, count: int) -> Reading:
    """Return a turn's attention over the text's `count` tokens and its slots.

    Raises:
        UnsupportedModel: queries, keys or values aren't those of positions, or weights · values isn't the output.
    """
    first, cells, shown = found_in(turn, count)
    axes, slots = turn.site.axes, (len(shown.queries[1]), len(shown.keys[1]))
    if slots != ((0, 0) if axes is None else (axes.queries.slots_of(count), axes.keys.slots_of(count))):
        raise UnsupportedModel(f"{turn.name} has {slots[1]} slots beside {count} tokens, unlike when it was probed")
    operands = operands_of(turn, first, cells)
    query, key = operands.tensors(first)
    value = torch.cat([cells.joined(one) for one in first.values.values()])[:, shown.columns.to(query.device)]
    with torch.no_grad():
        logits, live = cells.dense([*first.logits.values()]), cells.live
        bias = bias_of(turn, logits, operands.scale * (query @ key.mT), operands.still, cells)
        allowed = live[:1] if bool((live == live[:1]).all()) else live
    attention = attend(query, key, value.to(query.dtype), allowed, scale=operands.scale, bias=bias)
    _check_output(turn, attention, cells, first, shown)
    return Reading(attention, live, first, shown)


def found_in(turn: Turn, count: int) -> tuple[TurnRun, Cells, Positions]:
    """Return a turn's plain run, the cells of the text's tokens and its slots, and their positions."""
    first = turn.run()
    with torch.no_grad():
        _check(turn, first, count)
        cells = cells_of(turn, first)
        shown = positions_of(turn, first, cells, count)
        return first, _cut(turn, cells, shown), shown


def weights_of(turn: Turn, heads: int, count: int) -> Float[Tensor, "head query key"]:
    """Return a turn's own weights by one-hot values, its softmaxes held."""
    first, _, shown = found_in(turn, count)
    head = sum(value.shape[1] for value in first.values.values()) // heads
    wanted = torch.zeros(len(next(iter(first.values.values()))), dtype=torch.bool)
    wanted[shown.columns] = True
    found = torch.cat([by_one_hot(turn, first, path, head, held(first), wanted) for path in first.values])
    return found[:, shown.rows.to(found.device)][..., shown.columns.to(found.device)]


def blocked(turn: Turn, count: int, query: int, key: int) -> object:
    """Return a turn's output with one cell blocked in its own softmaxes."""
    first, cells, _ = found_in(turn, count)
    if int(cells.times[:, query, key].max()) > 1:
        raise UnsupportedModel(f"{turn.name} attends to a token several times in the row of one to be blocked")
    rows, columns = cells.rows[:, query], cells.columns[:, query, key]
    sizes = [one.shape[:-1].numel() for one in first.logits.values()]

    def soften(place: int, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        start = sum(sizes[:place])
        here = (rows >= start) & (rows < start + sizes[place]) & (columns >= 0)
        flat = logits.reshape(-1, logits.shape[-1]).clone()
        flat[rows[here] - start, columns[here]] = -torch.inf
        return compute(flat.reshape(logits.shape))

    return turn.run(soften=soften).output


def _check(turn: Turn, first: TurnRun, count: int) -> None:
    if not first.logits or not first.parts or not first.contexts:
        raise UnsupportedModel(f"{turn.name} ran without its softmax, its values or its output")
    kinds = {value.dtype for value in first.values.values()}
    if not kinds <= {torch.float32, torch.float64}:
        raise UnsupportedModel(
            f"{turn.name} attends sparsely in {str(kinds.pop()).removeprefix('torch.')}, whose rounding hides "
            "which cell is which; convert the model to float32"
        )
    sizes = {len(value) for value in first.values.values()}
    if len(sizes) > 1 or min(*sizes, len(first.context)) < count:
        raise UnsupportedModel(
            f"{turn.name} attends over {' and '.join(map(str, sizes))} positions, but the text has {count} tokens"
        )


def _cut(turn: Turn, cells: Cells, shown: Positions) -> Cells:
    """Drop all positions but the text's tokens and slots; none of these may attend to them."""
    found = cells.at(shown.rows.to(cells.rows.device), shown.columns.to(cells.rows.device))
    if int(cells.live[:, shown.rows.to(cells.rows.device)].sum()) != int(found.live.sum()):
        raise UnsupportedModel(
            f"{turn.name} attends to {cells.columns.shape[-1]} positions, but the text has {len(shown.queries[0])} "
            "tokens: some are neither tokens nor slots"
        )
    return found


def _summed(output: Float[Tensor, "head query width"], width: int) -> Float[Tensor, "own query width"]:
    """Add up the heads that share columns of the output; each has rows of its own."""
    return output.unflatten(0, (-1, width // output.shape[-1])).sum(0)


def _check_output(turn: Turn, attention: Attention, cells: Cells, first: TurnRun, shown: Positions) -> None:
    """Refuse weights that don't make the model's own output of its values."""
    with torch.no_grad():
        theirs = cells.joined(first.context)[:, shown.rows.to(first.context.device)]
        rows = cells.live.any(-1).any(0)[:, None]
        ours = _summed(attention.output, theirs.shape[0] * theirs.shape[-1])
        off = float(torch.where(rows, ours - theirs, 0).abs().max())
        if not off <= 1e-5 * max(float(theirs.abs().max()), 1e-30):
            raise UnsupportedModel(
                f"{turn.name}'s weights times its values aren't its output: {off:.1e} off of "
                f"{float(theirs.abs().max()):.1e}"
            )
