"""Reads a turn's sparse attention as a matrix of tokens by tokens, in the module's own numbers.

The module runs a few times with its softmaxes' outputs replaced. One-hot values show the value that each cell of a
softmax multiplies, and its row of the output. Numbered products show each logit's query and key. So no layout is
assumed: chunks, windows, blocks, buckets and paddings are all found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, attend
from attention_viz.recording.interception.following import Product, Soften
from attention_viz.recording.recorder import BLOCKED_BELOW
from attention_viz.recording.sparse.turn import Turn, TurnRun, held

# How far a number read from an output may be from a whole number.
_WHOLE = 0.2
# How far logits may be from factor · query · key + bias, as a share of the largest.
_LINEAR = 1e-4
# How far what is added to the scores may be from 0 and still be rounding, as a share of the largest logit.
_ROUNDING = 4e-6


@dataclass(frozen=True, eq=False)
class Cells:
    """The place of each cell of tokens by tokens in a module's softmaxes; −1 if it has none.

    Attributes:
        rows: counted over all softmaxes.
        columns: within a row.
        width: of a head's values.
    """

    rows: Int[Tensor, "head query"]
    columns: Int[Tensor, "head query key"]
    width: int

    @property
    def live(self) -> Bool[Tensor, "head query key"]:
        """The cells that the model attends over."""
        return (self.columns >= 0) & (self.rows >= 0)[..., None]

    def dense(self, softmaxes: Sequence[Tensor]) -> Float[Tensor, "head query key"]:
        """Return numbers of softmaxes as a matrix of tokens by tokens, 0 without a cell."""
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


@dataclass(frozen=True, eq=False)
class Reading:
    """A turn's attention over tokens.

    Attributes:
        attention: (head, query, …).
        live: the cells that the model attends over.
        first: the turn's plain run.
    """

    attention: Attention
    live: Bool[Tensor, "head query key"]
    first: TurnRun

    def context_of(self, output: Float[Tensor, "head query width"]) -> Tensor:
        """Return the turn's joined outputs with the tokens' rows replaced."""
        own = self.first.context
        joined = _summed(output, own.shape[-1]).transpose(0, 1).flatten(1)
        # Rows that attend to nothing are padding, and stay the model's own.
        some = self.live.any(-1).any(0)[:, None]
        return torch.cat([torch.where(some, joined.to(own.dtype), own[: len(joined)]), own[len(joined) :]])


def read(turn: Turn, count: int) -> Reading:
    """Return a turn's attention over the first `count` positions; the model may pad the others.

    Raises:
        UnsupportedModel: queries, keys or values aren't those of positions, or weights · values isn't the output.
    """
    first = turn.run()
    with torch.no_grad():
        _check(turn, first, count)
        cells = cells_of(turn, first)
        cells = _cut(turn, cells, count)
        products = _products(turn, first)
        operands, scale, still = _operands(turn, first, cells, products)
    query, key = (_gather(index, rows) for index, rows in zip(operands, _rows(first, products), strict=True))
    value = torch.cat([cells.joined(one) for one in first.values.values()])[:, : cells.columns.shape[-1]]
    with torch.no_grad():
        logits, live = cells.dense([*first.logits.values()]), cells.live
        bias = _bias(turn, logits, scale * (query @ key.mT), still, live)
        allowed = live[:1] if bool((live == live[:1]).all()) else live
    attention = attend(query, key, value.to(query.dtype), allowed, scale=scale, bias=bias)
    _check_output(turn, attention, cells, first)
    return Reading(attention, live, first)


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

    def columns(place: int, logits: Tensor, _compute: Callable[[Tensor], Tensor]) -> Tensor:
        numbers = torch.arange(1, logits.shape[-1] + 1, device=logits.device)
        return (live[place] * numbers).to(first.weights[place].dtype)

    ones = {path: torch.ones_like(value) for path, value in first.values.items()}
    head = _head_width(turn, _whole(turn, turn.run(values=ones, soften=numbered).context))
    rows, found = list[Tensor](), list[Tensor]()
    for path, value in first.values.items():
        own = _alone(first, path, torch.ones_like(value))
        numbers = _whole(turn, turn.run(values=own, soften=numbered).context)
        rows.append(numbers.reshape(len(numbers), -1, head)[..., 0].T - 1)
        found.append(_whole(turn, _by_one_hot(turn, first, path, head, columns)) - 1)
    return Cells(torch.cat(rows), torch.cat(found), head)


def weights_of(turn: Turn, heads: int, count: int) -> Float[Tensor, "head query key"]:
    """Return a turn's own weights over the first `count` positions by one-hot values, its softmaxes held."""
    first = turn.run()
    head = sum(value.shape[1] for value in first.values.values()) // heads
    return torch.cat([_by_one_hot(turn, first, path, head, held(first)) for path in first.values])[:, :count, :count]


def _by_one_hot(turn: Turn, first: TurnRun, path: str, head: int, soften: Soften) -> Float[Tensor, "head query key"]:
    """Return the share of each of a module's values in each row of the output, by one-hot values."""
    value, found = first.values[path], list[Tensor]()
    heads = value.shape[1] // head
    for start in range(0, len(value), head):
        hot = value.new_zeros(len(value), heads, head)
        for column in range(min(head, len(value) - start)):
            hot[start + column, :, column] = 1
        context = turn.run(values=_alone(first, path, hot.flatten(1)), soften=soften).context
        found.append(context.reshape(-1, heads, head).transpose(0, 1))
    return torch.cat(found, dim=-1)[..., : len(value)]


def _alone(first: TurnRun, path: str, value: Tensor) -> dict[str, Tensor]:
    """Return values for one module, and zeros for the others."""
    return {one: value if one == path else torch.zeros_like(other) for one, other in first.values.items()}


def blocked(turn: Turn, count: int, query: int, key: int) -> object:
    """Return a turn's output with one cell blocked in its own softmaxes."""
    first = turn.run()
    cells = _cut(turn, cells_of(turn, first), count)
    rows, columns = cells.rows[:, query], cells.columns[:, query, key]
    sizes = [one.shape[:-1].numel() for one in first.logits.values()]

    def soften(place: int, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        start = sum(sizes[:place])
        here = (rows >= start) & (rows < start + sizes[place]) & (columns >= 0)
        flat = logits.reshape(-1, logits.shape[-1]).clone()
        flat[rows[here] - start, columns[here]] = -torch.inf
        return compute(flat.reshape(logits.shape))

    return turn.run(soften=soften).output


def _live(logits: Tensor) -> Tensor:
    """Return which cells of a softmax aren't blocked: masks are low numbers.

    A row with several equally low cells is padding: it attends to nothing.
    """
    top = logits.amax(-1, keepdim=True)
    live = logits > top + BLOCKED_BELOW
    return live & ((top > BLOCKED_BELOW) | (live.sum(-1, keepdim=True) == 1))


def _whole(turn: Turn, numbers: Tensor) -> Tensor:
    found = numbers.round()
    if not float((numbers - found).abs().max()) < _WHOLE:
        raise UnsupportedModel(
            f"{turn.name} attends to a token several times in one row, or mixes several softmaxes in one row"
        )
    return found.long()


def _head_width(turn: Turn, rows: Tensor) -> int:
    """Return the width of a head: columns whose rows belong to the same softmax."""
    changes = (rows[:, 1:] != rows[:, :-1]).any(0).nonzero().flatten()
    head = rows.shape[1] if not len(changes) else int(changes[0]) + 1
    steps = torch.arange(head - 1, rows.shape[1] - 1, head, device=rows.device)
    if rows.shape[1] % head or not torch.equal(changes, steps):
        raise UnsupportedModel(f"{turn.name}'s heads aren't of one width, one after the other")
    return head


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


def _cut(turn: Turn, cells: Cells, count: int) -> Cells:
    """Drop the positions after the text; none of it may attend to them."""
    if bool((cells.columns[:, :count, count:] >= 0).logical_and(cells.rows[:, :count, None] >= 0).any()):
        raise UnsupportedModel(
            f"{turn.name} attends to {cells.columns.shape[-1]} positions, but the text has {count} tokens: some are "
            "summaries or global tokens of its own"
        )
    return replace(cells, rows=cells.rows[:, :count], columns=cells.columns[:, :count, :count])


def _products(turn: Turn, first: TurnRun) -> list[int]:
    """Return the products of two tensors that both depend on the input: of queries and keys, not of masks."""
    behind = sorted({number for numbers in first.behind.values() for number in numbers})
    leaves = [one for one in turn.module.modules() if next(one.parameters(recurse=False), None) is not None]
    noise = {one: torch.Generator().manual_seed(number) for number, one in enumerate(leaves)}
    other = turn.run(soften=held(first), noisy=noise, like=first)
    found = [
        number
        for number in behind
        if not torch.equal(first.products[number].left, other.products[number].left)
        and not torch.equal(first.products[number].right, other.products[number].right)
    ]
    if not found:
        raise UnsupportedModel(f"{turn.name} has no product of queries and keys before its softmax")
    return found


def _rows(first: TurnRun, products: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return all rows and all columns of the products' operands, (number, width)."""
    several = [first.products[number] for number in products]
    left = [one.left.expand(*one.lead, *one.left.shape[-2:]).reshape(-1, one.left.shape[-1]) for one in several]
    right = [one.right.mT.expand(*one.lead, *one.right.mT.shape[-2:]) for one in several]
    return torch.cat(left), torch.cat([one.reshape(-1, one.shape[-1]) for one in right])


def _operands(
    turn: Turn, first: TurnRun, cells: Cells, products: Sequence[int]
) -> tuple[tuple[Tensor, Tensor], float, Tensor]:
    """Return each query's and key's row of operands by number, the products' factor, and the logits without them."""

    def logits(of: Callable[[Product, int, int], Tensor]) -> Tensor:
        starts, row, column = dict[int, tuple[int, int]](), 0, 0
        for number in products:
            made = first.products[number]
            starts[number] = row, column
            row += made.lead.numel() * made.left.shape[-2]
            column += made.lead.numel() * made.right.shape[-1]

        def product(made: Product) -> Tensor | None:
            if made.number not in starts:
                return None
            shape = (*made.lead, made.left.shape[-2], made.right.shape[-1])
            return of(made, *starts[made.number]).to(made.left).expand(shape).contiguous()

        return cells.dense([*turn.run(soften=held(first), product=product).logits.values()])

    live = cells.live
    still = logits(lambda _made, _row, _column: torch.zeros(()))
    steps = torch.where(live, logits(lambda _made, _row, _column: torch.ones(())) - still, 0)
    # Some cells have a logit of their own, whatever the product is.
    moved = steps != 0
    scale = float(steps[moved].median()) if bool(moved.any()) else 1.0
    if not float(torch.where(moved, steps - scale, 0).abs().max()) <= _LINEAR * abs(scale):
        raise UnsupportedModel(f"{turn.name}'s logits don't follow from its queries' products with keys by one factor")

    def rows(made: Product, start: int, _column: int) -> Tensor:
        size = (*made.lead, made.left.shape[-2], 1)
        return torch.arange(start, start + torch.Size(size).numel()).reshape(size)

    def columns(made: Product, _row: int, start: int) -> Tensor:
        size = (*made.lead, 1, made.right.shape[-1])
        return torch.arange(start, start + torch.Size(size).numel()).reshape(size)

    found = [torch.where(moved, (logits(which) - still) / scale, -1) for which in (rows, columns)]
    query, key = (_whole(turn, numbers) for numbers in found)
    return (query.amax(2), key.amax(1)), scale, torch.where(moved, still, torch.nan)


def _bias(turn: Turn, logits: Tensor, scaled: Tensor, still: Tensor, live: Tensor) -> Tensor | None:
    """Return the bias, None for nothing; refuse logits that the product doesn't explain.

    Args:
        still: the logits without the product; NaN where it changes nothing.
    """
    bias = torch.where(still.isnan(), logits - scaled, still)
    off = torch.where(live, logits - scaled - bias, 0).abs().max()
    largest = torch.where(live & ~still.isnan(), logits, 0).abs().max().clamp_min(1.0)
    if not float(off) <= _LINEAR * float(largest):
        raise UnsupportedModel(
            f"{turn.name}'s logits aren't one factor times a query per row and a key per column, plus a bias"
        )
    # A row with a single key may have any logit.
    bias = torch.where(live & (live.sum(-1, keepdim=True) > 1), bias, 0)
    return bias.to(scaled.dtype) if float(bias.abs().max()) > _ROUNDING * float(largest) else None


def _gather(index: Int[Tensor, "head position"], rows: Tensor) -> Float[Tensor, "head position width"]:
    """Return rows by number; zeros for −1, positions that no cell shows."""
    return rows[index.clamp_min(0)] * (index >= 0)[..., None].to(rows.dtype)


def _summed(output: Float[Tensor, "head query width"], width: int) -> Float[Tensor, "own query width"]:
    """Add up the heads that share columns of the output; each has rows of its own."""
    return output.unflatten(0, (-1, width // output.shape[-1])).sum(0)


def _check_output(turn: Turn, attention: Attention, cells: Cells, first: TurnRun) -> None:
    """Refuse weights that don't make the model's own output of its values."""
    with torch.no_grad():
        theirs = cells.joined(first.context)[:, : attention.shape[-2]]
        rows = cells.live.any(-1).any(0)[:, None]
        ours = _summed(attention.output, theirs.shape[0] * theirs.shape[-1])
        off = float(torch.where(rows, ours - theirs, 0).abs().max())
        if not off <= 1e-5 * max(float(theirs.abs().max()), 1e-30):
            raise UnsupportedModel(
                f"{turn.name}'s weights times its values aren't its output: {off:.1e} off of "
                f"{float(theirs.abs().max()):.1e}"
            )
