"""A soak test: visitors come and go for half an hour, with words that no other visitor may ever see.

Usage: python -m benchmarks.soak [--minutes 30] [--visitors 30]
"""

import argparse
import asyncio
import getpass
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from attention_viz.ui.parts.menu import PAGES
from benchmarks.errands import Errand, errand, first_errand, word_of
from benchmarks.report import Table, to_text
from benchmarks.serving import ROOT, Memory, ask_where, serving
from benchmarks.uploading import Brought, uploaded_bytes
from benchmarks.visitor import Answer, Visitor

__all__ = ["Soak", "main", "others", "soak", "verdicts"]

# Seconds that somebody looks at a page at most, and waits for one.
_LOOKS, _PATIENCE = 4.0, 600
# Of ten visits, how many end in the middle; pages that are looked at in a visit.
_LEAVE, _PAGES = 1, 3
# Megabytes for models in memory: less than all of them take, so that they come and go.
_ROOM = 700
# Megabytes for traces in memory: so few that they are full when memory is first looked at, on a slow machine, too. What
# grows after that is kept for nothing.
_TRACES = 200
# Seconds for which Streamlit keeps a closed tab's visit, in case its visitor comes back.
_KEPT = 120
# What torch leaves in the folder of temporary files.
_OTHERS = f"torchinductor_{getpass.getuser()}"
# The most that memory may have grown from the first sixth of the time to its end, in a run long enough to tell.
_MOST_GROWTH, _LONG_ENOUGH = 1.05, 30
_WORD = re.compile(rb"zq(\d+)x\d+q")


@dataclass
class Soak:
    """The results.

    Attributes:
        mixed: of each word that was shown to somebody else, whose it was and who saw it.
        left: how many tabs were closed before their page was there.
        brought: how many files were brought and shown.
        remaining: what was left of visitors' files once all had gone, in words.
        memory: the server's own megabytes, with the second at which it was looked at.
        stood: where the server's threads were when somebody had got no answer.
    """

    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    mixed: list[str] = field(default_factory=list[str])
    left: int = 0
    brought: int = 0
    remaining: list[str] = field(default_factory=list[str])
    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    stood: list[str] = field(default_factory=list[str])

    def note(self, kind: str, answer: Answer) -> None:
        """Keep an answer; without one, make the server log its threads."""
        self.answers.setdefault(kind, []).append(answer)
        if answer.seconds >= _PATIENCE:
            ask_where()

    @property
    def errors(self) -> list[str]:
        """Return the errors on pages."""
        return [f"{kind}: {error}" for kind, each in self.answers.items() for one in each for error in one.errors]


def others(content: bytes, visitor: int) -> set[int]:
    """Return the other visitors whose words a message contains."""
    return {int(found) for found in _WORD.findall(content)} - {visitor}


def soak(minutes: float, visitors: int, kept: int = _KEPT) -> Soak:
    """Start a server, and let visitors come and go for some minutes.

    Args:
        kept: seconds for which the server keeps a closed tab's visit.
    """
    found, begun = Soak(), time.monotonic()
    program = ("-m", "attention_viz.ui.process", "run", str(ROOT / "app.py"))
    program += (f"--server.disconnectedSessionTTL={kept}",)
    room = {"ATTENTION_VIZ_MODEL_MEMORY": str(_ROOM), "ATTENTION_VIZ_TRACE_MEMORY": str(_TRACES)}
    in_full = {"STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full", **room}
    with tempfile.TemporaryDirectory() as temporary:
        with (
            serving(program, {**in_full, "ATTENTION_VIZ_METRICS": "on", "TMPDIR": temporary}, found.stood) as address,
            Memory() as memory,
        ):
            _come_and_go(address, memory, begun + 60 * minutes, visitors, kept, found)
            found.remaining += _held(address)
        found.remaining += [f"the file {path.name}" for path in Path(temporary).iterdir() if path.name != _OTHERS]
    return found


def _come_and_go(address: str, memory: Memory, until: float, visitors: int, kept: int, found: Soak) -> None:
    begun = time.monotonic()

    async def together() -> None:
        visits = [_visit_again(address, number, until, found) for number in range(visitors)]
        looking = asyncio.create_task(_look(memory, begun, found))
        try:
            await asyncio.gather(*visits)
            # A closed tab's visit is over when somebody comes or goes after its time.
            await asyncio.sleep(kept + 1)
            for _ in range(2):
                await _come_by(address)
        finally:
            looking.cancel()

    asyncio.run(together())


async def _come_by(address: str) -> None:
    """Open the app and leave."""
    visitor = Visitor(address, {}, _PATIENCE)
    await visitor.come()
    _ = await visitor.open()
    await visitor.leave()


def _held(address: str) -> list[str]:
    """Describe the visitors' files that the server still holds."""
    size = uploaded_bytes(address)
    return [f"{size:,} bytes of uploads in memory"] if size else []


async def _look(memory: Memory, begun: float, found: Soak) -> None:
    while True:
        await asyncio.sleep(1)
        found.memory.append((time.monotonic() - begun, memory.now))


async def _visit_again(address: str, number: int, until: float, found: Soak) -> None:
    """Run one visitor, who returns with other words until the time is up."""
    draw, visit = random.Random(number), 0
    while time.monotonic() < until:
        visit += 1
        own = word_of(number, visit)
        # What is brought takes a while to make.
        asked = await (
            asyncio.to_thread(first_errand, draw, number) if visit == 1 else asyncio.to_thread(errand, draw, own)
        )
        leaves = visit > 1 and draw.randrange(10) < _LEAVE
        own_seen = list[bool]()

        def hear(content: bytes, own: bytes = own.encode(), seen: list[bool] = own_seen) -> None:
            found.mixed.extend(f"a word of {whose} was shown to {number}" for whose in others(content, number))
            seen.append(own in content)

        visitor = Visitor(address, asked.link, _PATIENCE, heard=hear)
        await visitor.come()
        try:
            if leaves:
                await _leave(visitor, draw, found, asked)
            else:
                await _visit(visitor, draw, found, asked, own_seen)
        finally:
            await visitor.leave()


async def _leave(visitor: Visitor, draw: random.Random, found: Soak, asked: Errand) -> None:
    """Close the tab while its page is made, or while its file is uploaded or read."""
    if asked.file is not None:
        _ = await visitor.open()
    doing = asyncio.create_task(visitor.open() if asked.file is None else _hand_in(visitor, asked.file))
    await asyncio.sleep(draw.uniform(0, _LOOKS))
    _ = doing.cancel()
    found.left += 1


async def _visit(visitor: Visitor, draw: random.Random, found: Soak, asked: Errand, own_seen: list[bool]) -> None:
    opened = await visitor.open()
    found.note(f"Explore, {asked.kind if asked.file is None else 'before a file'}", opened)
    if asked.file is not None:
        own_seen.clear()
        answer = await _hand_in(visitor, asked.file)
        if any(own_seen):
            found.brought += 1
        else:
            answer = replace(answer, errors=(*answer.errors, f"{asked.file.name} was brought and isn't shown"))
        found.note(f"Explore, {asked.kind}", answer)
    for label in draw.sample(sorted(PAGES), _PAGES):
        await asyncio.sleep(draw.uniform(0, _LOOKS))
        if label in visitor.pages:
            found.note(label, await visitor.follow(label))


async def _hand_in(visitor: Visitor, file: Brought) -> Answer:
    return await visitor.upload(file.label, file.name, file.content)


def _table(found: Soak) -> Table:
    rows = list[list[str]]()
    for kind, answers in sorted(found.answers.items()):
        took = sorted(one.seconds for one in answers)
        late = took[min(len(took) - 1, int(0.95 * len(took)))]
        rows.append([kind, str(len(took)), f"{took[len(took) // 2]:.2f} s", f"{late:.2f} s", f"{took[-1]:.2f} s"])
    return Table(("what was opened", "times", "median", "95 of 100", "slowest"), rows)


def verdicts(found: Soak, minutes: float) -> list[tuple[bool, str]]:
    """Return whether each target is reached, with a sentence."""
    marks = [
        (not found.errors, f"{len(found.errors)} errors {'; '.join(found.errors[:3])}".strip()),
        (
            not found.remaining,
            f"of {found.brought} files brought, left at the end: {'; '.join(found.remaining) or '-'}",
        ),
        (not found.mixed, f"{len(found.mixed)} mixed-up words {'; '.join(found.mixed[:3])}".strip()),
    ]
    if minutes >= _LONG_ENOUGH:
        before, after = _at(found.memory, 60 * minutes / 6), _at(found.memory, found.memory[-1][0])
        reached = after <= _MOST_GROWTH * before
        marks.append(
            (reached, f"the server's own memory {before:,.0f} MB after a sixth of the time, {after:,.0f} at the end")
        )
    return marks


def _at(memory: Sequence[tuple[float, float]], second: float) -> float:
    """Return the memory at that second: the median of the minute before it."""
    values = sorted(size for when, size in memory if second - 60 <= when <= second)
    return values[len(values) // 2]


def _course(memory: Sequence[tuple[float, float]]) -> str:
    """Return the memory minute by minute, to show whether it grows."""
    ends = range(60, int(memory[-1][0]) + 1, 60)
    return ", ".join(f"{_at(memory, second):,.0f}" for second in ends)


def main() -> int:
    """Run it and report; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Visitors come and go.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--visitors", type=int, default=30)
    arguments = parser.parse_args()
    found = soak(arguments.minutes, arguments.visitors)
    print(to_text(_table(found)))
    print(f"{found.left} tabs were closed before their page was there")
    print(f"the server's own memory in megabytes, minute by minute: {_course(found.memory)}")
    if found.stood:
        print("where the server's threads were when a visitor got no answer:", *found.stood, sep="\n")
    marks = verdicts(found, arguments.minutes)
    for reached, words in marks:
        print(f"{'reached' if reached else 'MISSED'}: {words}")
    return 0 if all(reached for reached, _ in marks) else 1


if __name__ == "__main__":
    sys.exit(main())
