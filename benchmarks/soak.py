"""A soak: visitors come and go for half an hour, with words of their own that nobody else may ever be shown.

Usage: python -m benchmarks.soak [--minutes 30] [--visitors 30]
"""

import argparse
import asyncio
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from attention_viz.models import CATALOGUE, of_text
from attention_viz.ui.parts.menu import PAGES
from benchmarks.passages import PASSAGES
from benchmarks.report import Table, to_text
from benchmarks.serving import ROOT, Memory, serving
from benchmarks.visitor import Answer, Visitor

__all__ = ["Soak", "main", "others", "soak", "verdicts", "word_of"]

# Seconds that somebody looks at a page at most, and waits for one.
_LOOKS, _PATIENCE = 4.0, 600
# Of ten visits, how many end in the middle, and how many are of a picture or a sound; of ten texts, how many are long;
# pages that are looked at in a visit.
_LEAVE, _LOOK_OR_LISTEN, _LONG, _PAGES = 1, 2, 2, 3
_SEEN = ("picture", "sound")
# Megabytes for models in memory: less than all of them take, so that they come and go.
_ROOM = 700
# The most that memory may have grown from the first sixth of the time to its end, in a run long enough to tell.
_MOST_GROWTH, _LONG_ENOUGH = 1.05, 30
_WORD = re.compile(rb"zq(\d+)x\d+q")


@dataclass
class Soak:
    """What came of it.

    Attributes:
        answers: of each kind of question.
        mixed: of each word that was shown to somebody else, whose it was and who saw it.
        left: how many tabs were closed before their page was there.
        memory: the server's own megabytes, with the second at which it was looked at.
    """

    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    mixed: list[str] = field(default_factory=list[str])
    left: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @property
    def errors(self) -> list[str]:
        """What pages showed instead of something."""
        return [f"{kind}: {error}" for kind, each in self.answers.items() for one in each for error in one.errors]


def word_of(visitor: int, visit: int) -> str:
    """A word that nobody else types."""
    return f"zq{visitor}x{visit}q"


def others(content: bytes, visitor: int) -> set[int]:
    """Whose words are in what somebody was sent, but their own."""
    return {int(found) for found in _WORD.findall(content)} - {visitor}


def soak(minutes: float, visitors: int) -> Soak:
    """Start a server, and have so many visitors come and go for so many minutes."""
    found, begun = Soak(), time.monotonic()
    in_full = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full", "ATTENTION_VIZ_MODEL_MEMORY": str(_ROOM)}
    with (
        serving(("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py")), in_full) as address,
        Memory() as memory,
    ):

        async def together() -> None:
            visits = [_visit_again(address, number, begun + 60 * minutes, found) for number in range(visitors)]
            looking = asyncio.create_task(_look(memory, begun, found))
            try:
                await asyncio.gather(*visits)
            finally:
                looking.cancel()

        asyncio.run(together())
    return found


async def _look(memory: Memory, begun: float, found: Soak) -> None:
    while True:
        await asyncio.sleep(1)
        found.memory.append((time.monotonic() - begun, memory.now))


async def _visit_again(address: str, number: int, until: float, found: Soak) -> None:
    """One visitor, who comes again with other words until the time is up."""
    draw, visit = random.Random(number), 0
    while time.monotonic() < until:
        visit += 1
        kind, asked = _asked(draw, word_of(number, visit))

        def hear(content: bytes) -> None:
            found.mixed.extend(f"a word of {whose} was shown to {number}" for whose in others(content, number))

        visitor = Visitor(address, asked, _PATIENCE, heard=hear)
        await visitor.come()
        try:
            await _visit(visitor, draw, found, kind)
        finally:
            await visitor.leave()


def _asked(draw: random.Random, word: str) -> tuple[str, dict[str, str]]:
    """What a visitor comes with, in words and as a link: most often a text, else a picture or a sound."""
    seen = {entry.reads: name for name, entry in CATALOGUE.items() if entry.available and entry.reads in _SEEN}
    reads = draw.choice(sorted(seen)) if seen and draw.randrange(10) < _LOOK_OR_LISTEN else "text"
    if reads != "text":
        return f"a {reads}", {"model": seen[reads], reads: draw.choice(CATALOGUE[seen[reads]].samples)}
    text, model = _text(draw, word), draw.choice(sorted(of_text()))
    # An encoder that predicts words does so behind a mask.
    text += " [MASK]" if CATALOGUE[model].predicts and CATALOGUE[model].streams == ("encoder",) else ""
    asked = {"model": model, "text": text}
    return f"a {'long' if len(text) > 200 else 'short'} text", asked


def _text(draw: random.Random, word: str) -> str:
    if draw.randrange(10) < _LONG:
        return f"{word} {draw.choice(PASSAGES)}"[:1500]
    return f"The {word} of the river was {draw.choice(('flooded', 'closed', 'old'))}"


async def _visit(visitor: Visitor, draw: random.Random, found: Soak, kind: str) -> None:
    if draw.randrange(10) < _LEAVE:
        opening = asyncio.create_task(visitor.open())
        await asyncio.sleep(draw.uniform(0, _LOOKS))
        opening.cancel()
        found.left += 1
        return
    found.answers.setdefault(f"Explore, {kind}", []).append(await visitor.open())
    for label in draw.sample(sorted(PAGES), _PAGES):
        await asyncio.sleep(draw.uniform(0, _LOOKS))
        if label in visitor.pages:
            found.answers.setdefault(label, []).append(await visitor.follow(label))


def _table(found: Soak) -> Table:
    rows = list[list[str]]()
    for kind, answers in sorted(found.answers.items()):
        took = sorted(one.seconds for one in answers)
        late = took[min(len(took) - 1, int(0.95 * len(took)))]
        rows.append([kind, str(len(took)), f"{took[len(took) // 2]:.2f} s", f"{late:.2f} s", f"{took[-1]:.2f} s"])
    return Table(("what was opened", "times", "median", "95 of 100", "slowest"), rows)


def verdicts(found: Soak, minutes: float) -> list[tuple[bool, str]]:
    """Each mark: whether it is reached, and in words."""
    told = [
        (not found.errors, f"{len(found.errors)} errors {'; '.join(found.errors[:3])}".strip()),
        (not found.mixed, f"{len(found.mixed)} mixed-up words {'; '.join(found.mixed[:3])}".strip()),
    ]
    if minutes >= _LONG_ENOUGH:
        before, after = _at(found.memory, 60 * minutes / 6), _at(found.memory, found.memory[-1][0])
        reached = after <= _MOST_GROWTH * before
        told.append(
            (reached, f"the server's own memory {before:,.0f} MB after a sixth of the time, {after:,.0f} at the end")
        )
    return told


def _at(memory: Sequence[tuple[float, float]], second: float) -> float:
    """What memory was about that second: the median of a minute before it."""
    values = sorted(size for when, size in memory if second - 60 <= when <= second)
    return values[len(values) // 2]


def main() -> int:
    """Run it and tell; 1 where a mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Visitors come and go.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--visitors", type=int, default=30)
    arguments = parser.parse_args()
    found = soak(arguments.minutes, arguments.visitors)
    print(to_text(_table(found)))
    print(f"{found.left} tabs were closed before their page was there")
    told = verdicts(found, arguments.minutes)
    for reached, words in told:
        print(f"{'reached' if reached else 'MISSED'}: {words}")
    return 0 if all(reached for reached, _ in told) else 1


if __name__ == "__main__":
    sys.exit(main())
