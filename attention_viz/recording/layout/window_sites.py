"""Holds the calls that attend in windows, and the tensors whose positions these may show."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Int
from torch import Tensor, nn

# How many vectors there are, as a base for positions' numbers.
BASE = 4
# The size of vectors that are added, as a share of the numbers' own: what goes by these seldom changes.
_NEAR = 0.1


@dataclass(frozen=True)
class WindowSource:
    """A tensor with a vector per position: a module's first input, or a convolution's output.

    Attributes:
        begins: how many calls come before it.
        own: its numbers, if vectors are added to them; None if they are replaced.
    """

    module: nn.Module
    shape: torch.Size
    begins: int
    is_output: bool = False
    own: Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def width(self) -> int:
        """The size of each position's vector."""
        return self.shape[1 if self.is_output else -1]

    @property
    def count(self) -> int:
        """The number of positions."""
        return self.shape.numel() // self.width

    def filled(self, digits: Int[Tensor, " position"] | int, like: Tensor) -> Tensor:
        """Return the tensor with each position's vector by its digit, or one vector everywhere."""
        if isinstance(digits, int):
            digits = torch.full((self.count,), digits)
        chance = torch.Generator().manual_seed(self.width)
        vectors = torch.randn(BASE, self.width, generator=chance).to(like)
        found = vectors[digits.to(like.device)]
        if self.is_output:
            found = found.reshape(self.shape[0], -1, self.width).transpose(1, 2)
        found = found.reshape(self.shape)
        return found if self.own is None else self.own + _NEAR * self.own.std().clamp_min(1e-2) * found


@dataclass(frozen=True)
class WindowSite:
    """A call that attends in windows, or beside some.

    Attributes:
        sources: the tensors that its slots may show, outermost first.
        entry: the input of the innermost module around its windows.
    """

    number: int
    pattern: str
    rows: int
    sources: tuple[WindowSource, ...]
    entry: WindowSource | None

    @property
    def home(self) -> nn.Module | None:
        """The innermost module around its windows."""
        return None if self.entry is None else self.entry.module

    @property
    def replaced(self) -> "WindowSite":
        """The call, with vectors in place of its entry's numbers."""
        return self if self.entry is None else replace(self, entry=replace(self.entry, own=None))


def separate(sites: Iterable[WindowSite]) -> list[list[WindowSite]]:
    """Sort calls into lists without modules inside each other."""
    found = list[list[WindowSite]]()
    for site in sites:
        if site.home is None:
            continue
        inside = _inside(site)
        fits = (one for one in found if not any(other.home in inside or site.home in _inside(other) for other in one))
        free = next(fits, None)
        found.append([site]) if free is None else free.append(site)
    return found


def _inside(site: WindowSite) -> set[nn.Module]:
    return set() if site.home is None else {*site.home.modules()}


def is_cut(source: WindowSource, others: Mapping[int, WindowSource]) -> bool:
    """Return whether a source can't be replaced in the same run as an earlier one, whose calls would show it."""
    return any(
        other.begins < source.begins <= number
        or (
            other.begins == source.begins
            and other != source
            and (other.is_output or source.module in {*other.module.modules()})
        )
        for number, other in others.items()
    )
