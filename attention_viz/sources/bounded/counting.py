"""Count what a model's forward makes, and end it once that is more than any model of its size makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Bounds:
    """What one forward may make.

    Attributes:
        at_once: bytes of what one step makes.
        together: bytes of what all steps make, whether it is kept or not.
        steps: how many operations of torch it may take.
    """

    at_once: int = 1_000_000_000
    together: int = 8_000_000_000
    steps: int = 200_000

    def with_weights(self, size: int) -> "Bounds":
        """Return the bounds of a model whose weights take so many bytes."""
        return Bounds(max(self.at_once, 2 * size), self.together + 10 * size, self.steps)


class TooMuch(Exception):
    """A forward makes more than it may. The message says what."""


class Counting(TorchDispatchMode):
    """While entered, counts each operation of torch in this thread and what it makes.

    On torch's "meta" device nothing is taken for it.
    """

    def __init__(self, bounds: Bounds) -> None:
        """Take what may be made before this ends it."""
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
    """Return how many bytes an operation makes; what only looks at others' memory makes none."""
    if any(one.alias_info is not None for one in func._schema.returns):
        return 0
    return sum(leaf.numel() * leaf.itemsize for leaf in tree_leaves(made) if isinstance(leaf, Tensor))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
