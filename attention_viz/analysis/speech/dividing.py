"""Division of a sound's frames among its spoken tokens."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["divide"]

# What a frame of a pause costs inside a word, and a frame of speech outside of one: more than any gain, so that neither
# happens unless nothing else is possible; the former more, since a pause may hold a cough that belongs to no word.
_IN_A_WORD, _OUTSIDE = -1e6, -1e3
_NONE = -1


def divide(
    gain: Float[np.ndarray, "row frame"], opens: Sequence[bool], quiet: Bool[np.ndarray, " frame"]
) -> list[tuple[int, int]]:
    """Assign each token adjacent frames, in order, none empty, with the largest total gain.

    Only quiet frames between words belong to no token.

    Returns:
        First frame, and end (exclusive).
    """
    rows, frames = gain.shape
    # The states: tokens in their order, and before each word, and at the end, a pause that may be left out.
    states = [one for row in range(rows) for one in ([_NONE, row] if opens[row] else [row])] + [_NONE]
    worth = np.empty((frames, len(states)))
    for at, row in enumerate(states):
        if row == _NONE:
            worth[:, at] = np.where(quiet, 0.0, _OUTSIDE)
        elif row == rows - 1 and opens[row]:
            worth[:, at] = gain[row]
        else:
            worth[:, at] = np.where(quiet, _IN_A_WORD, gain[row])
    skips = np.array([at > 1 and states[at - 1] == _NONE for at in range(len(states))])
    path = _best_path(worth, skips, states)
    taken = [[frame for frame, at in enumerate(path) if states[at] == row] for row in range(rows)]
    return [(one[0], one[-1] + 1) for one in taken]


def _best_path(
    worth: Float[np.ndarray, "frame state"], skips: Bool[np.ndarray, " state"], states: list[int]
) -> list[int]:
    """Steps stay, advance, or skip a pause."""
    frames, count = worth.shape
    steps = np.zeros((frames, count), dtype=np.int8)
    best = np.full(count, -np.inf)
    for at in range(2 if states[0] == _NONE else 1):
        best[at] = worth[0, at]
    for frame in range(1, frames):
        ways = np.full((3, count), -np.inf)
        ways[0], ways[1, 1:], ways[2, 2:] = best, best[:-1], best[:-2]
        ways[2, ~skips] = -np.inf
        steps[frame] = ways.argmax(axis=0)
        best = ways.max(axis=0) + worth[frame]
    at = count - 1 if best[-1] > best[-2] else count - 2
    path = [at]
    for frame in range(frames - 1, 0, -1):
        at -= int(steps[frame, at])
        path.append(at)
    return path[::-1]
