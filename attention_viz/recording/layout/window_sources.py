"""Puts known vectors at the positions of a layer's input, or of a convolution's output, to find windows."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor, nn

# How many vectors there are, as a base for positions' numbers.
BASE = 4
# The size of vectors that are added, as a share of the numbers' own: what goes by these seldom changes.
_NEAR = 1e-2


@dataclass(frozen=True)
class Source:
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
        """The number of channels."""
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
        return found if self.own is None else self.own + _NEAR * self.own.std().clamp_min(_NEAR) * found
