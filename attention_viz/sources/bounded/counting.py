"""Count what a model's forward makes, and end it once that is more than any model of its size makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Bounds:
    """Limits for one forward: bytes of one step, bytes of all steps (kept or not), and number of torch operations."""

    at_once: int = 1_000_000_000
    together: int = 8_000_000_000
    steps: int = 200_000

    def with_weights(self, size: int) -> "Bounds":
        """Return bounds for a model with weights of `size` bytes."""
        return Bounds(max(self.at_once, 2 * size), self.together + 10 * size, self.steps)


class TooMuch(Exception):
    """A forward exceeds its bounds; the message names the bound."""


class Counting(TorchDispatchMode):
    """Counts this thread's torch operations and their bytes while entered; "meta" tensors take no memory."""

    def __init__(self, bounds: Bounds) -> None:
        """Keep the bounds."""
        super().__init__()
        self._bounds = bounds
        self._steps = self._made = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation and count it."""
        self._steps += 1
        if self._steps > self._bounds.steps:
            raise TooMuch(f"more than {self._bounds.steps:,} steps")
        made = func(*args, **(kwargs or {}))
        size = _size(func, made)
        if size > self._bounds.at_once:
            raise TooMuch(f"more than {_gigabytes(self._bounds.at_once)} in one step")
        self._made += size
        if self._made > self._bounds.together:
            raise TooMuch(f"more than {_gigabytes(self._bounds.together)} in all steps together")
        return made


def _size(func: Any, made: Any) -> int:
    """Return the bytes that an operation makes; views make none."""
    if any(one.alias_info is not None for one in func._schema.returns):
        return 0
    return sum(leaf.numel() * leaf.itemsize for leaf in tree_leaves(made) if isinstance(leaf, Tensor))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
