"""Places of patches and frames, and samples of positions."""

from collections.abc import Sequence

import numpy
import torch
from jaxtyping import Int
from torch import Tensor

from attention_viz.edits.kinds.masks import Allow
from attention_viz.trace.seen import Seen
from attention_viz.trace.tokens import Tokens

# By thirds of an image.
_WHERE = (
    ("at the upper left", "at the top", "at the upper right"),
    ("on the left", "near the centre", "on the right"),
    ("at the lower left", "at the bottom", "at the lower right"),
)
_SIDES = (
    ("to its upper left", "above it", "to its upper right"),
    ("to its left", "near it", "to its right"),
    ("to its lower left", "below it", "to its lower right"),
)


def patch_grid(tokens: Tokens) -> Int[Tensor, "row column"]:
    """Return patch positions by row and column, −1 for none; empty without patches."""
    rows, columns = (max((place[axis] for place in tokens.patches.values()), default=-1) + 1 for axis in (0, 1))
    positions = torch.full((rows, columns), -1)
    for at, (row, column) in tokens.patches.items():
        positions[row, column] = at
    return positions


def patches_beside_words(tokens: Tokens) -> frozenset[int]:
    """Return the positions of an image's patches beside words; none of an image alone."""
    return frozenset(tokens.patches) if any(at not in tokens.patches for at in tokens.counted) else frozenset()


def without_patches(tokens: Tokens, positions: Sequence[int], stream: str | None = None) -> Allow:
    """Return the edit that hides patches: beside words from the words, in an image alone from all positions."""
    pictured = patches_beside_words(tokens)
    asking = torch.tensor([at for at in range(len(tokens)) if at not in pictured])
    allowed = torch.ones(2 * (len(tokens),), dtype=torch.bool)
    allowed[asking[:, None], torch.tensor(positions)] = False
    return Allow(allowed, stream=stream)


def where_words(down: float, across: float) -> str:
    """Say where in an image a point is, from 0 to 1 each way, as `whereInImage` in the explorer's `seen/telling.js`."""
    row, column = (min(2, max(0, int(3 * part))) for part in (down, across))
    return _WHERE[row][column]


def patch_words(tokens: Tokens, position: int) -> str:
    """Say where in its image a patch is; empty for other tokens."""
    patches = tokens.patches
    if (place := patches.get(position)) is None:
        return ""
    down, across = (max(one[axis] for one in patches.values()) + 1 for axis in (0, 1))
    return where_words((place[0] + 0.5) / down, (place[1] + 0.5) / across)


def beside_words(place: tuple[float, float], other: tuple[float, float]) -> str:
    """Name the side of another patch that a patch is on, each by row and column, as the explorer's `whereFrom`."""
    below, right = place[0] - other[0], place[1] - other[1]
    return _SIDES[_side(below, right)][_side(right, below)]


def _side(by: float, across: float) -> int:
    return 1 if 2 * abs(by) <= abs(across) else 1 + (by > 0) - (by < 0)


def after_the_sound(seen: Seen, tokens: Tokens) -> tuple[bool, ...]:
    """Mark the frames after an audio's end; none without audio."""
    if seen.sound is None:
        return (False,) * len(tokens)
    end = len(seen.sound) / seen.rate
    return tuple(tokens.frames.get(at, -1) >= end for at in range(len(tokens)))


def sample_of(positions: Sequence[int], count: int) -> tuple[int, ...]:
    """Sample at most `count` positions, one from each equal stretch.

    Random within a stretch, with a fixed seed, because fixed steps could follow a repetition in the text.
    Source: Cochran 1977, "Sampling Techniques", section 5.1.
    """
    if len(positions) <= count:
        return tuple(positions)
    edges = numpy.linspace(0, len(positions), count + 1).round().astype(int)
    within = (numpy.random.default_rng(0).random(count) * numpy.diff(edges)).astype(int)
    return tuple(positions[place] for place in (edges[:-1] + within).tolist())
