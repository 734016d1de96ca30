"""Limit how many threads compute at once; others wait their turn.

A page enters several times. If each entry went to the end of the line, a crowd's runs would all be under way, late and
in memory at once; so arrival counts, see `keep_turn`.
"""

import contextlib
import functools
import itertools
import threading
from bisect import insort
from collections.abc import Callable, Generator
from types import TracebackType

from attention_viz.serving.settings import SETTINGS

# Seconds between reports to waiting threads.
PAUSE = 1.0
# A forward of so many tokens takes seconds on one core.
_LONG = 1024


_numbers = itertools.count()
_thread = threading.local()


def new_turn() -> int:
    """Return a turn, higher than earlier visitors'."""
    return next(_numbers)


def turn() -> int | None:
    """Return this thread's turn; None if each entry takes a new one."""
    return getattr(_thread, "turn", None)


def keep_turn(kept: int | None) -> None:
    """Set this thread's turn, from `new_turn`; None for a new one per entry."""
    _thread.turn = kept


class Door:
    """A limited number of places, entered by `with` in order of turns; re-entrant."""

    def __init__(self, places: int, entered: Callable[[int], object] = lambda inside: None) -> None:
        """Begin with all places free."""
        self._inside, self._entered = threading.local(), entered
        self._places, self._taken = places, 0
        # Whoever waits, in the order of turns; of two entries by one turn, the earlier one first.
        self._line, self._moved = list[tuple[int, int]](), threading.Condition()

    @property
    def computing(self) -> int:
        """The number of computing threads, the caller included."""
        return self._taken + (self._depth() == 0)

    @property
    def ahead(self) -> int:
        """The number of threads before a newcomer; 0 if a place is free."""
        with self._moved:
            return self._taken + len(self._line) if self._taken >= self._places else 0

    @contextlib.contextmanager
    def telling(self, tell: Callable[[int], object]) -> Generator[None]:
        """Report how many are ahead while this thread waits; `tell` stops the wait by raising."""
        before, self._inside.tell = getattr(self._inside, "tell", None), tell
        try:
            yield
        finally:
            self._inside.tell = before

    def __enter__(self) -> None:
        """Wait for a place and take it."""
        depth = self._depth()
        if depth == 0:
            number = next(_numbers)
            self._wait((number if (kept := turn()) is None else kept, number))
            self._entered(self._taken)
        self._inside.depth = depth + 1

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Free the place with the last entry."""
        self._inside.depth = self._depth() - 1
        if self._inside.depth == 0:
            with self._moved:
                self._taken -= 1
                self._moved.notify_all()

    def _wait(self, ticket: tuple[int, int]) -> None:
        tell = getattr(self._inside, "tell", None)
        with self._moved:
            insort(self._line, ticket)
        try:
            seconds = None if tell is None else 0.0
            while not self._enter(ticket, seconds):
                assert tell is not None
                # Without the lock: to tell somebody takes as long as it takes.
                tell(self._before(ticket))
                seconds = PAUSE
        except BaseException:  # whoever waited was stopped
            with self._moved:
                self._line.remove(ticket)
                self._moved.notify_all()
            raise

    def _enter(self, ticket: tuple[int, int], seconds: float | None) -> bool:
        """Wait for the ticket's place, `seconds` at most; return whether it was taken."""
        with self._moved:
            if not self._moved.wait_for(lambda: self._taken + self._line.index(ticket) < self._places, seconds):
                return False
            self._line.remove(ticket)
            self._taken += 1
            return True

    def _before(self, ticket: tuple[int, int]) -> int:
        with self._moved:
            return self._taken + self._line.index(ticket)

    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)


@functools.cache
def cores() -> int:
    """Return torch's default thread count, read before anybody lowers it."""
    import torch

    return torch.get_num_threads()


def share_cores(inside: int = 0) -> None:
    """Limit this thread to its share of cores; a long text that computes alone gets all."""
    import torch

    among = max(1, inside) if getattr(_thread, "long", False) else SETTINGS.forwards_at_once
    torch.set_num_threads(max(1, cores() // among))  # torch keeps this number for each thread by itself


@contextlib.contextmanager
def long_text(tokens: int) -> Generator[None]:
    """Let this thread use idle cores for a long text, then return memory."""
    if tokens < _LONG:
        yield
        return
    from attention_viz.trace.memory import give_back

    before, _thread.long = getattr(_thread, "long", False), True
    share_cores(FORWARDS.computing)
    try:
        yield
    finally:
        _thread.long = before
        share_cores(FORWARDS.computing)
        if not before:
            give_back()


# `Runner` enters this for every forward of every model.
FORWARDS = Door(SETTINGS.forwards_at_once, share_cores)
# What is worked out of recorded runs has a door of its own, always entered first: it may wait for a value that somebody
# else's forward is bringing, and whoever waits so must not keep that forward from its place.
ANALYSES = Door(SETTINGS.forwards_at_once, share_cores)
