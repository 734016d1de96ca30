"""Take turns and sum up, so that two figures of one run are comparable."""

import gc
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Reading", "Spread", "on_one_thread", "ratios", "take_turns"]

# What one or several clocks show.
Reading = tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """The median of some figures, and their range."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Iterable[float]) -> "Spread":
        """Sum up some figures, one at least."""
        known = list(figures)
        return cls(statistics.median(known), min(known), max(known))

    def write(self, pattern: str = "{:.2f}") -> str:
        """Return the median and, if there is one, the range as text."""
        middle, low, high = (pattern.format(figure) for figure in (self.median, self.low, self.high))
        return middle if low == high else f"{middle} ({low}–{high})"


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Have torch compute on one thread: several spin while they wait for each other, which counts as work."""
    import torch  # not above: what is measured from outside, such as a server, does without it here

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def take_turns(
    ways: Mapping[str, Callable[[], object]], clock: Callable[[], Reading], *, rounds: int, repeats: int = 1
) -> dict[str, list[Reading]]:
    """Time ways in turns, A B C A B C …, so that a slow minute affects all of them alike.

    Args:
        ways: what to time, by name; each is run once beforehand, and that run isn't counted.
        clock: returns seconds by one or several clocks.

    Returns:
        By name, for each of its turns, what a single run took by each clock.
    """
    for way in ways.values():
        way()
    gc.collect()
    figures: dict[str, list[Reading]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            began = clock()
            for _ in range(repeats):
                way()
            figures[name].append(tuple((now - then) / repeats for now, then in zip(clock(), began, strict=True)))
    return figures


def ratios(figures: Sequence[float], base: Sequence[float]) -> Spread:
    """Return each figure over the one of the same round."""
    return Spread.of(figure / other for figure, other in zip(figures, base, strict=True))
