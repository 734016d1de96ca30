"""Thirty learners at once go through every page and the whole course, each with a sentence of their own."""

import asyncio
import itertools
import random
import resource
import statistics
from collections.abc import Sequence
from dataclasses import replace

from attention_viz.lesson import LESSONS
from attention_viz.ui.pages.cross.page import EXAMPLE
from attention_viz.ui.parts.menu import PAGES
from benchmarks.report import Benchmark, Result, Table
from benchmarks.serving import ROOT, serving
from benchmarks.visitor import Answer, Visitor

__all__ = ["BENCHMARK"]

_VISITORS = 30
# Seconds that a learner looks before the next click, on average: few, as a lesson takes minutes.
_LOOKS = 8.0
_PLACES, _THINGS, _HAPPENED = (
    ("river", "city", "garden", "village", "lake"),
    ("bank", "gate"),
    ("flooded", "closed", "old"),
)

_NEXT = "Next →"
_REPLIES = ("**Right.**", "**Not yet.**")
# Of the page that needs an encoder–decoder.
_EXAMPLE = f"Show {EXAMPLE.model} with “{EXAMPLE.text}”"

_Answers = dict[str, list[Answer]]


def run(quick: bool) -> Result:
    """Walk through the app, all at once; in a quick run, three visitors see three pages and a lesson."""
    count, looks = (3, 0.1) if quick else (_VISITORS, _LOOKS)
    # So that an error says what it was.
    in_full = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"}
    with serving(("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py")), in_full) as address:
        answers = asyncio.run(_lesson(address, count, looks, quick))
    errors = [f"{step}: {error}" for step, each in answers.items() for one in each for error in one.errors]
    if errors:
        raise RuntimeError(f"{len(errors)} errors in {_total(answers)} runs, such as {'; '.join(errors[:5])}")
    # The server was the only process started here; Linux counts in kilobytes.
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    rows = [_row(step, each) for step, each in answers.items()]
    everything = [one for each in answers.values() for one in each]
    columns = ("what was opened", "times", "median", "95 of 100", "slowest", "sent")
    table = Table(columns, [*rows, _row("**all**", everything)])
    return Result([table], _remarks(count, everything, memory), packages=("websockets",))


def sentences() -> list[str]:
    """Return thirty sentences, all different, so that none is answered from another's cache."""
    every = itertools.product(_PLACES, _THINGS, _HAPPENED)
    return [f"The {thing} of the {place} was {happened}" for place, thing, happened in every]


async def _lesson(address: str, count: int, looks: float, quick: bool) -> _Answers:
    """Run all visitors from the same moment on."""
    draw = random.Random(0)
    walks = [
        _walk(Visitor(address, {"text": text}), [draw.expovariate(1 / looks) for _ in range(3 * len(LESSONS))], quick)
        for text in sentences()[:count]
    ]
    together: _Answers = {}
    for one in await asyncio.gather(*walks):
        for step, answers in one.items():
            together.setdefault(step, []).extend(answers)
    return together


async def _walk(visitor: Visitor, looks: Sequence[float], quick: bool) -> _Answers:
    """Walk one visitor through Explore, the whole course with an answer to each exercise, and every other page."""
    found: _Answers = {}
    pauses = iter(looks)
    others = [label for label in PAGES if label not in ("Explore", "Learn")]
    await visitor.come()
    try:
        found["Explore, all at once on a fresh server"] = [await visitor.open()]
        await asyncio.sleep(next(pauses))
        found["Learn"] = [await visitor.follow("Learn")]
        for lesson in range(2 if quick else len(LESSONS)):
            if lesson:
                await asyncio.sleep(next(pauses))
                found.setdefault("Learn: the next lesson", []).append(await visitor.press(_NEXT))
            await asyncio.sleep(next(pauses))
            found.setdefault("Learn: an exercise answered", []).append(await _answer(visitor))
        if not quick and visitor.offers(_NEXT):
            raise RuntimeError("the course continues after as many steps as it has lessons, so some steps led nowhere")
        for label in others[: 1 if quick else None]:
            await asyncio.sleep(next(pauses))
            found[label] = [await visitor.follow(label)]
            if visitor.offers(_EXAMPLE):
                await asyncio.sleep(next(pauses))
                found[f"{label}: its own example"] = [await visitor.press(_EXAMPLE)]
    finally:
        await visitor.leave()
    return found


async def _answer(visitor: Visitor) -> Answer:
    """Answer the exercise on the screen, and check for a reply."""
    answer = await visitor.press("Check", "Your answer")
    if not any(map(visitor.was_told, _REPLIES)):
        return replace(answer, errors=(*answer.errors, "an answer got no reply"))
    return answer


def _row(step: str, answers: Sequence[Answer]) -> list[str]:
    took = sorted(one.seconds for one in answers)
    late = took[min(len(took) - 1, int(0.95 * len(took)))]
    size = statistics.median(one.size for one in answers)
    figures = (statistics.median(took), late, took[-1])
    return [step, str(len(took)), *(f"{seconds:.2f} s" for seconds in figures), f"{size / 1e3:.0f} kB"]


def _remarks(count: int, answers: Sequence[Answer], memory: float) -> list[str]:
    quick = sum(one.seconds < 1 for one in answers) / len(answers)
    return [
        f"No error in {len(answers)} runs of {count} visitors.",
        f"{quick:.0%} of all answers came within a second.",
        f"The server took {memory:,.0f} MB of memory at most.",
    ]


def _total(answers: _Answers) -> int:
    return sum(map(len, answers.values()))


BENCHMARK = Benchmark(
    title="A room of thirty",
    method=(
        f"{_VISITORS} visitors, each with their own sentence, open Explore at the same moment on a fresh server. Then "
        "each goes through all lessons of the course, gives each exercise the first available answer, and opens all "
        f"other pages. They stay on each page for {_LOOKS:g} seconds on average, far less than people do. A visitor is "
        "a connection like a browser's that draws nothing; visitors and server share the machine. Seconds run from "
        "the click to the last part of the page. The benchmark fails if a page shows an error, if an answer gets no "
        "reply, or if a page takes longer than two minutes."
    ),
    run=run,
)
