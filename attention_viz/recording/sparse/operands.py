"""Finds each logit's query and key: rows of the operands of a turn's products, by numbered products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.interception.following import Product
from attention_viz.recording.sparse.cells import Cells, whole
from attention_viz.recording.sparse.turn import Turn, TurnRun, held

# How far logits may be from factor · query · key + bias, as a share of the largest.
_LINEAR = 1e-4
# How far what is added to the scores may be from 0 and still be rounding, as a share of the largest logit.
_ROUNDING = 4e-6


@dataclass(frozen=True, eq=False)
class Operands:
    """The queries and keys of a turn's cells.

    Attributes:
        query: each output row's row of left operands, counted over all products; −1 if no cell shows it.
        key: each value's row of right operands.
        scale: from query · key to a logit.
        still: the logits without the product; NaN where it changes nothing.
    """

    products: Sequence[int]
    query: Int[Tensor, "head query"]
    key: Int[Tensor, "head key"]
    scale: float
    still: Float[Tensor, "head query key"]

    def tensors(self, first: TurnRun) -> tuple[Float[Tensor, "head query width"], Float[Tensor, "head key width"]]:
        """Return the queries and keys."""
        left, right = rows_of(first, self.products)
        return _gather(self.query, left), _gather(self.key, right)


def operands_of(turn: Turn, first: TurnRun, cells: Cells) -> Operands:
    """Find each cell's query and key."""
    products = _products(turn, first)
    (query, key), scale, still = _operands(turn, first, cells, products)
    return Operands(products, query, key, scale, still)


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


def rows_of(first: TurnRun, products: Sequence[int]) -> tuple[Tensor, Tensor]:
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
    query, key = (whole(turn, numbers) for numbers in found)
    return (query.amax(2), key.amax(1)), scale, torch.where(moved, still, torch.nan)


def bias_of(turn: Turn, logits: Tensor, scaled: Tensor, still: Tensor, cells: Cells) -> Tensor | None:
    """Return the bias, None for nothing; refuse logits that the product doesn't explain.

    A key that a row has several times has that many times the weight, as by the logarithm in its logit.

    Args:
        still: the logits without the product; NaN where it changes nothing.
    """
    live = cells.live
    bias = torch.where(still.isnan(), logits - scaled, still)
    off = torch.where(live, logits - scaled - bias, 0).abs().max()
    largest = torch.where(live & ~still.isnan(), logits, 0).abs().max().clamp_min(1.0)
    if not float(off) <= _LINEAR * float(largest):
        raise UnsupportedModel(
            f"{turn.name}'s logits aren't one factor times a query per row and a key per column, plus a bias"
        )
    # A row with a single key may have any logit.
    bias = bias + cells.times.clamp_min(1).to(bias).log()
    bias = torch.where(live & (live.sum(-1, keepdim=True) > 1), bias, 0)
    return bias.to(scaled.dtype) if float(bias.abs().max()) > _ROUNDING * float(largest) else None


def _gather(index: Int[Tensor, "head position"], rows: Tensor) -> Float[Tensor, "head position width"]:
    """Return rows by number; zeros for −1, positions that no cell shows."""
    return rows[index.clamp_min(0)] * (index >= 0)[..., None].to(rows.dtype)
