"""Every benchmark by name: a new one is a module with a BENCHMARK, a line here, and a place in docs/performance.md."""

from benchmarks import (
    asking,
    capture,
    circuits,
    classroom,
    crowd,
    effects,
    growing,
    heads,
    hearing,
    interception,
    language,
    long,
    patches,
    patching,
    scanning,
    seeing,
    size,
    starting,
    switching,
    why,
)
from benchmarks.report import Benchmark

__all__ = ["BENCHMARKS"]

BENCHMARKS: dict[str, Benchmark] = {
    "capture": capture.BENCHMARK,
    "interception": interception.BENCHMARK,
    "growing": growing.BENCHMARK,
    "language": language.BENCHMARK,
    "size": size.BENCHMARK,
    "switching": switching.BENCHMARK,
    "heads": heads.BENCHMARK,
    "why": why.BENCHMARK,
    "asking": asking.BENCHMARK,
    "circuits": circuits.BENCHMARK,
    "patching": patching.BENCHMARK,
    "effects": effects.BENCHMARK,
    "scanning": scanning.BENCHMARK,
    "seeing": seeing.BENCHMARK,
    "patches": patches.BENCHMARK,
    "hearing": hearing.BENCHMARK,
    "long": long.BENCHMARK,
    "starting": starting.BENCHMARK,
    "classroom": classroom.BENCHMARK,
    "crowd": crowd.BENCHMARK,
    "longest": crowd.LONGEST,
}
