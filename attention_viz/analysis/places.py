"""Places of a picture's patches and of frames within a sound."""

import torch
from jaxtyping import Int
from torch import Tensor

from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens

__all__ = ["after_the_sound", "patch_grid"]


def patch_grid(tokens: Tokens) -> Int[Tensor, "row column"]:
    """Return patch positions by row and column, −1 for none; empty without patches."""
    rows, columns = (max((place[axis] for place in tokens.patches.values()), default=-1) + 1 for axis in (0, 1))
    positions = torch.full((rows, columns), -1)
    for at, (row, column) in tokens.patches.items():
        positions[row, column] = at
    return positions


def after_the_sound(seen: Seen, tokens: Tokens) -> tuple[bool, ...]:
    """Mark frames of silence after a sound's end; none without a sound."""
    if seen.sound is None:
        return (False,) * len(tokens)
    end = len(seen.sound) / seen.rate
    return tuple(tokens.frames.get(at, -1) >= end for at in range(len(tokens)))
