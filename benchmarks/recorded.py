"""Measure a recorded run over a plain one, for any input."""

import resource
import statistics
from collections.abc import Callable

from benchmarks.measuring import ratios, take_turns

__all__ = ["COLUMNS", "captured_to_plain"]

COLUMNS = ("input", "captured ÷ plain", "plain ÷ plain (the noise)", "plain")


def captured_to_plain(
    what: str, plain: Callable[[], object], captured: Callable[[], object], quick: bool
) -> tuple[list[str], float]:
    """Return a table row and its ratio: CPU time of the whole process."""
    ways = {"plain": plain, "captured": captured, "plain again": plain}
    figures = take_turns(ways, _processor_time, rounds=2 if quick else 7)
    seconds = {way: [sum(reading) for reading in readings] for way, readings in figures.items()}
    base = [statistics.mean(pair) for pair in zip(seconds["plain"], seconds["plain again"], strict=True)]
    ratio, noise = ratios(seconds["captured"], base), ratios(seconds["plain again"], seconds["plain"])
    return [what, ratio.write("{:.3f}"), noise.write("{:.3f}"), f"{statistics.median(base):.2f} s"], ratio.median


def _processor_time() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime
