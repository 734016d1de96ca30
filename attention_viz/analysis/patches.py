"""Where the patches of a picture stand."""

import torch
from jaxtyping import Int
from torch import Tensor

from attention_viz.trace.tokens import Tokens

__all__ = ["patch_grid"]


def patch_grid(tokens: Tokens) -> Int[Tensor, "row column"]:
    """The position of each patch by its row and its column; −1 where there is none. Empty where none is a patch."""
    places = {at: place for at, place in enumerate(tokens.place) if place is not None and len(place) == 2}
    rows, columns = (int(max((place[axis] for place in places.values()), default=-1)) + 1 for axis in (0, 1))
    positions = torch.full((rows, columns), -1)
    for at, (row, column) in places.items():
        positions[int(row), int(column)] = at
    return positions
