"""Where the patches of a picture stand, and which frames lie within a sound."""

import torch
from jaxtyping import Int
from torch import Tensor

from attention_viz.trace.shown.seen import Seen
from attention_viz.trace.tokens import Tokens

__all__ = ["after_the_sound", "patch_grid"]


def patch_grid(tokens: Tokens) -> Int[Tensor, "row column"]:
    """The position of each patch by its row and its column; −1 where there is none. Empty where none is a patch."""
    places = {at: place for at, place in enumerate(tokens.place) if place is not None and len(place) == 2}
    rows, columns = (int(max((place[axis] for place in places.values()), default=-1)) + 1 for axis in (0, 1))
    positions = torch.full((rows, columns), -1)
    for at, (row, column) in places.items():
        positions[int(row), int(column)] = at
    return positions


def after_the_sound(seen: Seen, tokens: Tokens) -> tuple[bool, ...]:
    """Whether each position is a frame after the end of a sound, which is filled up with silence.

    Args:
        seen: what was read; where that is no sound, no position is.
    """
    if seen.sound is None:
        return (False,) * len(tokens)
    end = len(seen.sound) / seen.rate
    return tuple(place is not None and len(place) == 1 and place[0] >= end for place in tokens.place)
