"""Products of two tensors as models write them, read as rows × columns, and handed back as they were asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["Product", "product_of"]

_PLAIN = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
_ADDED = {torch.baddbmm, Tensor.baddbmm}


@dataclass(frozen=True, eq=False)
class Product:
    """One product of two tensors.

    Attributes:
        left: the first factor, (…, row, width).
        layout: turns (…, row, column) into the order of axes in which the result was asked for.
        straight: turns a result as it was asked for into (…, row, column).
        factor: what the product is multiplied by.
        added: what is added to it, already multiplied by its own factor; None for nothing.
        number: which of the run's products it is.
    """

    left: Tensor
    right: Tensor
    layout: Callable[[Tensor], Tensor]
    straight: Callable[[Tensor], Tensor]
    factor: float = 1.0
    added: Tensor | None = None
    number: int = -1

    @property
    def lead(self) -> torch.Size:
        """The axes before the rows, of both factors together."""
        return torch.broadcast_shapes(self.left.shape[:-2], self.right.shape[:-2])

    def result(self, value: Tensor) -> Tensor:
        """What is handed back where the two multiply to this, (…, row, column)."""
        made = self.layout(value)
        return made if self.added is None else made + self.added

    @property
    def value(self) -> Tensor:
        """What the two multiply to, (…, row, column), with its factor and without what is added."""
        made = self.left @ self.right
        return made * self.factor if self.factor != 1 else made


def product_of(func: object, args: Sequence[Any], named: Mapping[str, Any]) -> Product | None:
    """A call of torch's as a product; None where it is none of two tensors of three axes or more."""
    if func in _PLAIN:
        left, right = _two(args, named, ("input", "other"), ("self", "mat2"), ("tensor1", "tensor2"))
        return _plain(left, right)
    if func is Tensor.__rmatmul__:
        return _plain(args[1], args[0])
    if func in _ADDED:
        added, left, right = (*args[:3],) if len(args) >= 3 else (args[0], named.get("batch1"), named.get("batch2"))
        if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not _three(left, right):
            return None
        beta, alpha = float(named.get("beta", 1)), float(named.get("alpha", 1))
        return Product(left, right, _same, _same, alpha, None if beta == 0 else added * beta)
    if func is torch.einsum:
        return _summed(args)
    return None


def _two(args: Sequence[Any], named: Mapping[str, Any], *names: tuple[str, str]) -> tuple[Any, Any]:
    if len(args) == 2:
        return args[0], args[1]
    keys = {key for pair in names for key in pair}
    given = [*args, *(value for key, value in named.items() if key in keys)]
    return (given[0], given[1]) if len(given) == 2 else (None, None)


def _three(left: object, right: object) -> bool:
    return isinstance(left, Tensor) and isinstance(right, Tensor) and min(left.ndim, right.ndim) >= 3


def _plain(left: Any, right: Any) -> Product | None:
    return Product(left, right, _same, _same) if _three(left, right) else None


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _summed(args: Sequence[Any]) -> Product | None:
    """A sum over one axis of two tensors, with one axis of its own each; the axes they share come first."""
    factors = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
    if not isinstance(args[0], str) or len(factors) != 2 or not _three(*factors):
        return None
    asked, arrow, made = args[0].replace(" ", "").partition("->")
    one, _, other = asked.partition(",")
    letters = (one, other, made)
    if not arrow or not all(name.isalpha() and len(set(name)) == len(name) for name in letters):
        return None
    lead = [axis for axis in made if axis in one and axis in other]
    width = [axis for axis in one if axis in other and axis not in made]
    rows = [axis for axis in made if axis not in other]
    columns = [axis for axis in made if axis not in one]
    if not len(width) == len(rows) == len(columns) == 1:
        return None
    if any(len(name) != len(lead) + 2 for name in letters):
        return None
    left = factors[0].permute([one.index(axis) for axis in (*lead, *rows, *width)])
    right = factors[1].permute([other.index(axis) for axis in (*lead, *width, *columns)])
    order = [*lead, *rows, *columns]
    asked_for = [order.index(axis) for axis in made]
    back = [made.index(axis) for axis in order]
    return Product(left, right, lambda result: result.permute(asked_for), lambda result: result.permute(back))
