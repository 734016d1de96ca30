"""Keep processes for texts, one per tokenizer in use; idle ones end if others need the slot."""

import contextlib
import itertools
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from attention_viz.errors import UnusableText
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import Broken, NotStarted, Process, ProcessEnded, prepare

# How often a waiting thread checks whether to go on, in seconds.
_LOOK = 0.25
# Characters: more than any model here reads, and less than keeps a machine busy for long.
LONGEST_TEXT = 2_000_000
# An honest tokenizer took 200 MB for a text of a million letters.
LIMITS = Limits(memory=600_000_000, seconds=60, processor=20, answer=64_000_000)
# How long a text may take; loading the largest published vocabularies takes longer on a busy machine.
SECONDS = 20.0
# After ending a process this many times within this many seconds, the same request is refused for as long.
_ENDS, _PAUSE = 2, 60.0

_MODULE = "attention_viz.inputs.isolated.answering"


class Resting(Protocol):
    """An owner of a process; `used` grows with each use."""

    used: int

    def rest(self) -> bool:
        """End the process unless it is busy, and return whether it was ended."""
        ...


class ProcessSlots:
    """A limited number of processes, idle ones included."""

    def __init__(self, most: int) -> None:
        """Start with none in use."""
        self.most = most
        self.begin()

    def begin(self) -> None:
        """Start with none in use and none waiting."""
        self._users = weakref.WeakSet[Resting]()
        self._waiting = 0
        self._changed = threading.Condition()

    def take(self, user: Resting, seconds: float, check: Callable[[], None] = lambda: None) -> bool:
        """Take a slot, ending the least recently used process if all are in use; return whether there was one in time.

        An owner that has a slot keeps it. An exception in `check` ends the wait.
        """
        until = time.monotonic() + seconds
        with self._changed:
            while user not in self._users:
                if len(self._users) < self.most or self._end_idle():
                    self._users.add(user)
                    break
                left = until - time.monotonic()
                if left <= 0:
                    return False
                check()
                self._waiting += 1
                try:
                    self._changed.wait(min(left, _LOOK))
                finally:
                    self._waiting -= 1
        return True

    def give_back(self, user: Resting) -> None:
        """Release a slot once the process has ended."""
        with self._changed:
            self._users.discard(user)
            self._changed.notify()

    def is_wanted(self) -> bool:
        """Return whether anyone waits for a slot: busy owners then end their process after use."""
        return self._waiting > 0

    def _end_idle(self) -> bool:
        for other in sorted(self._users, key=lambda one: one.used):
            if other.rest():
                self._users.discard(other)
                return True
        return False


def get_ready() -> None:
    """Import in the background what a process for texts needs."""
    prepare(_MODULE)


@dataclass(frozen=True)
class _End:
    """How many times something ended a process, until when that counts, and the last reason."""

    count: int
    until: float
    why: str


class TextProcess:
    """A process for one tokenizer's texts, or for chat templates alone; it serves one thread at a time."""

    def __init__(
        self,
        name: str,
        folder: Path | None = None,
        limits: Limits | None = None,
        module: str = _MODULE,
        image: str | None = None,
        how: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the arguments; the process starts with the first request. `folder` None is for templates alone."""
        self._module, self._image, self._how = module, image, how or {}
        self.name = name
        self._folder = None if folder is None else folder.absolute()
        self.limits = limits or LIMITS
        self.begin()
        self._described: Message | None = None
        # What ended it lately: a question, by its hash, or a kind of question, by its name.
        self._ends = dict[int | str, _End]()
        self._answered = set[str]()
        self.used = 0
        _all.add(self)

    def load(self, check: Callable[[], None] = lambda: None) -> Message:
        """Load the tokenizer and return its description; an exception in `check` ends that."""
        try:
            with self._turn, self._slot():
                self._running(self.limits.seconds, check)
        except Broken as error:
            raise Broken(self._without_path(error)) from None
        assert self._described is not None
        return self._described

    def ask(
        self,
        do: str,
        values: Mapping[str, Any],
        content: bytes = b"",
        *,
        what: str = "tokenizer",
        thing: str = "text",
        seconds: float | None = None,
        longest: int | None = None,
    ) -> Message:
        """Return the answer to a request within `seconds`, of at most `longest` bytes; None for the usual limits."""
        subject = f"{self.name}'s {what}"
        within = min(SECONDS, self.limits.seconds) if seconds is None else seconds
        until = time.monotonic() + within
        if not self._turn.acquire(timeout=within):
            raise UnusableText(
                f"{subject} was busy with other texts for {within:g} seconds; try again or choose another model"
            )
        try:
            with self._slot():
                return self._answer(subject, thing, Message({"do": do, **values}, content), until, within, longest)
        except NotStarted as error:
            raise UnusableText(f"{subject} {error}; try again") from None
        except Broken as error:
            how = "refuses" if do == "template" else "failed on"
            raise UnusableText(f"{subject} {how} this {thing}: {self._without_path(error)}") from None
        finally:
            self._turn.release()

    def _answer(
        self, subject: str, thing: str, request: Message, until: float, seconds: float, longest: int | None
    ) -> Message:
        do, asked = str(request.values["do"]), hash((json.dumps(request.values, sort_keys=True), request.content))
        self._check_pause(asked, f"{subject} was stopped {_ENDS} times on this {thing}")
        # A process that answered something isn't refused as a whole: other visitors may go on.
        if do not in self._answered:
            self._check_pause(do, f"{subject} was stopped on {_ENDS} of its first {thing}s")
        process = self._reloaded(subject, until - time.monotonic())
        try:
            answer = process.ask(request, seconds=seconds, longest=longest)
        except NotStarted:
            raise
        except ProcessEnded as error:
            if self._count_end(asked, str(error)) == 1:
                self._count_end(do, str(error))
            helps = "shorten it" if thing == "text" else "use a smaller one"
            raise UnusableText(f"{subject} {error} for this {thing}; {helps} or choose another model") from None
        self._answered.add(do)
        self._ends.pop(asked, None)
        return answer

    def _reloaded(self, subject: str, seconds: float) -> Process:
        """Return the process with its tokenizer loaded; if loading fails, say why."""
        self._check_pause("load", f"{subject} was stopped {_ENDS} times while reloading")
        try:
            return self._running(seconds)
        except NotStarted:
            raise
        except ProcessEnded as error:
            self._count_end("load", str(error))
            raise UnusableText(f"{subject} {error} while reloading; try again or choose another model") from None
        except Broken as error:
            raise UnusableText(f"{subject} can't be reloaded: {self._without_path(error)}") from None

    def _running(self, seconds: float, check: Callable[[], None] = lambda: None) -> Process:
        """Return the process with its tokenizer loaded; start it if it doesn't run."""
        self.used = next(_uses)
        if self._process is None or not self._process.alive:
            if not SLOTS.take(self, seconds, check):
                raise NotStarted(
                    f"can't start because all {SLOTS.most} processes were busy for {max(seconds, 0):.1f} seconds"
                )
            self._process = Process(self._module, self.limits, image=self._image)
            if self._folder is not None:
                values = {"do": "load", "folder": str(self._folder), "name": self.name, **self._how}
                try:
                    self._check_same(self._process.ask(Message(values), check))
                except BaseException:
                    self._process.end()
                    raise
        return self._process

    @contextlib.contextmanager
    def _slot(self) -> Generator[None]:
        """Release the slot afterwards if the process has ended, or if others wait for one."""
        try:
            yield
        finally:
            if self._process is not None and SLOTS.is_wanted():
                self._process.end()
            if self._process is None or not self._process.alive:
                self._process = None
                SLOTS.give_back(self)

    def _check_same(self, described: Message) -> None:
        """Refuse another tokenizer than the one that the model was loaded with."""
        if self._described is None:
            self._described = described
        elif described != self._described:
            raise UnusableText(f"files of {self.name} changed since the model was loaded; load it again")

    def _check_pause(self, key: int | str, what: str) -> None:
        now = time.monotonic()
        self._ends = {one: end for one, end in self._ends.items() if end.until > now}
        end = self._ends.get(key)
        if end is not None and end.count >= _ENDS:
            wait = f"wait {end.until - now:.0f} seconds or choose another model"
            raise UnusableText(f"{what} because it {end.why}; {wait}")

    def _count_end(self, key: int | str, why: str) -> int:
        """Count an end of the process, and return how many the same cause had."""
        before = self._ends.get(key)
        count = 1 if before is None else before.count + 1
        self._ends[key] = _End(count, time.monotonic() + _PAUSE, why)
        return count

    def _without_path(self, error: Exception) -> str:
        """Return a foreign error's message without the model's path, because a server's visitors read it."""
        return str(error) if self._folder is None else str(error).replace(str(self._folder), self.name)

    def begin(self) -> None:
        """Reset to no process and a free lock."""
        self._turn = threading.Lock()
        self._process: Process | None = None

    def rest(self) -> bool:
        """End the process unless it is busy, and return whether it was ended."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._process is not None:
                self._process.end()
            self._process = None
        finally:
            self._turn.release()
        return True


_uses = itertools.count(1)
SLOTS = ProcessSlots(8)
_all = weakref.WeakSet[TextProcess]()


def _begin_anew() -> None:
    """Reset everything in a fork: processes belong to the parent, and threads it lacks may hold locks."""
    SLOTS.begin()
    for one in _all:
        one.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
