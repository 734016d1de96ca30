"""A sample of the rows of a matrix that is too large to be gone through: spread over all of it, the same each time."""

from collections.abc import Sequence

import numpy

__all__ = ["sample_of"]


def sample_of(positions: Sequence[int], count: int) -> tuple[int, ...]:
    """So many of some positions, one from each of as many stretches of equal length; all where there are no more.

    Which one of a stretch is left to chance, with a fixed seed: every tenth row would always meet the same place of a
    text that repeats itself every ten tokens. Source: Cochran 1977, "Sampling Techniques", section 5.1.

    Args:
        count: how many are chosen at most.
    """
    if len(positions) <= count:
        return tuple(positions)
    edges = numpy.linspace(0, len(positions), count + 1).round().astype(int)
    within = (numpy.random.default_rng(0).random(count) * numpy.diff(edges)).astype(int)
    return tuple(positions[place] for place in (edges[:-1] + within).tolist())
