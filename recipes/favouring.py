"""Letting one head of a layer do a job that several would share. What is done here, a card has to tell."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from recipes.heads import output_slice

__all__ = ["Favouring"]


class Favouring:
    """Holds back all heads of a layer but one. Trained evenly, several learn the same and none of them is needed."""

    @torch.no_grad()
    def __init__(
        self,
        projections: Sequence[nn.Module],
        heads: int,
        *,
        chosen: Mapping[int, int],
        speed: Mapping[int, float],
        price: float = 0.01,
    ) -> None:
        """Make every other head's part of W_O ten times smaller, and remember where it stands."""
        # Taken anew each time: a view made without gradients can't be used with them.
        self._parts: Callable[[], list[tuple[int, int, Tensor]]] = lambda: [
            (layer, head, output_slice(projections[layer], head, heads)) for layer in chosen for head in range(heads)
        ]
        self._chosen, self._speed, self._price = chosen, speed, price
        for layer, head, part in self._parts():
            part.mul_(1.0 if chosen[layer] == head else 0.1)
        self._before = [part.clone() for _, _, part in self._parts()]

    @torch.no_grad()
    def hold_back(self) -> None:
        """After a step: take back most of what the others learned in it."""
        for before, (layer, head, part) in zip(self._before, self._parts(), strict=True):
            if self._chosen[layer] != head:
                part.copy_(before.lerp(part, self._speed[layer]))
                before.copy_(part)

    def penalty(self) -> Tensor:
        """What the heads cost, to be added to the loss."""
        return self._price * torch.stack([part.norm() for _, _, part in self._parts()]).sum()
