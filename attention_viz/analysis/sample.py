"""Repeatable samples of rows, spread over large matrices."""

from collections.abc import Sequence

import numpy

__all__ = ["sample_of"]


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
