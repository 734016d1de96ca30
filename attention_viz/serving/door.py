"""The door before whatever takes the machine's cores: so many at once, the others wait their turn.

One page takes several entries: the run, its comparison, what is worked out of it. If each began anew at the end of the
line, a crowd that comes at once would have all of its runs under way together: everybody's page would be done last, and
the memory of all of them taken at the same time. So an entry counts by when the visitor came, see `keep_turn`.
"""

import contextlib
import functools
import itertools
import threading
from bisect import insort
from collections.abc import Callable, Generator
from types import TracebackType

from attention_viz.serving.settings import SETTINGS

__all__ = ["ANALYSES", "FORWARDS", "Door", "keep_turn", "long_text", "new_turn", "share_cores", "turn"]


# Seconds after which whoever waits hears how many are still before them.
_PAUSE = 1.0
# Of so many tokens a forward takes seconds on one core.
_LONG = 1024


_numbers = itertools.count()
_thread = threading.local()


def new_turn() -> int:
    """The turn of somebody who comes now; those of everybody who came before are less."""
    return next(_numbers)


def turn() -> int | None:
    """By which turn this thread enters doors; None where each entry is a new one."""
    return getattr(_thread, "turn", None)


def keep_turn(kept: int | None) -> None:
    """Have this thread enter every door by one turn from now on, however often it enters.

    Args:
        kept: from `new_turn`, for the same visitor and the same request; None for a new turn at each entry.
    """
    _thread.turn = kept


class Door:
    """Places that are entered by `with`, in the order of turns; whoever is inside may enter again without another."""

    def __init__(self, places: int, entered: Callable[[int], object] = lambda inside: None) -> None:
        """Begin with all of them free."""
        self._inside, self._entered = threading.local(), entered
        self._places, self._taken = places, 0
        # Whoever waits, in the order of turns; of two entries by one turn, the earlier one first.
        self._line, self._moved = list[tuple[int, int]](), threading.Condition()

    @property
    def computing(self) -> int:
        """How many compute if whoever asks does: those inside, and who asks where they are none of them."""
        return self._taken + (self._depth() == 0)

    @property
    def ahead(self) -> int:
        """How many are before whoever came now, inside or waiting; 0 where a place is free."""
        with self._moved:
            return self._taken + len(self._line) if self._taken >= self._places else 0

    @contextlib.contextmanager
    def telling(self, tell: Callable[[int], object]) -> Generator[None]:
        """Have whoever enters from this thread, while it waits, hear again and again how many are before it.

        Args:
            tell: called with their number, by this thread; by raising it stops waiting.
        """
        before, self._inside.tell = getattr(self._inside, "tell", None), tell
        try:
            yield
        finally:
            self._inside.tell = before

    def __enter__(self) -> None:
        """Take a place, and wait for one where there is none."""
        depth = self._depth()
        if depth == 0:
            number = next(_numbers)
            self._wait((number if (kept := turn()) is None else kept, number))
            self._entered(self._taken)
        self._inside.depth = depth + 1

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Give the place back with the last of the entries."""
        self._inside.depth = self._depth() - 1
        if self._inside.depth == 0:
            with self._moved:
                self._taken -= 1
                self._moved.notify_all()

    def _wait(self, ticket: tuple[int, int]) -> None:
        """Take a place once there is one and nobody of an earlier turn waits for it."""
        tell = getattr(self._inside, "tell", None)
        with self._moved:
            insort(self._line, ticket)
        try:
            seconds = None if tell is None else 0.0
            while not self._enter(ticket, seconds):
                assert tell is not None
                # Without the lock: to tell somebody takes as long as it takes.
                tell(self._before(ticket))
                seconds = _PAUSE
        except BaseException:  # whoever waited was stopped
            with self._moved:
                self._line.remove(ticket)
                self._moved.notify_all()
            raise

    def _enter(self, ticket: tuple[int, int], seconds: float | None) -> bool:
        """Wait so long at most for a place that is this ticket's, and take it; whether there was one."""
        with self._moved:
            if not self._moved.wait_for(lambda: self._taken + self._line.index(ticket) < self._places, seconds):
                return False
            self._line.remove(ticket)
            self._taken += 1
            return True

    def _before(self, ticket: tuple[int, int]) -> int:
        """How many are inside, or wait by an earlier turn."""
        with self._moved:
            return self._taken + self._line.index(ticket)

    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)


@functools.cache
def cores() -> int:
    """How many threads torch would compute with by itself, asked before anybody has it take fewer."""
    import torch

    return torch.get_num_threads()


def share_cores(inside: int = 0) -> None:
    """Have this thread compute on its share of the machine's cores, as many as if all places were taken.

    Only a long text takes all cores while nobody computes beside it: a short one comes in pieces that are too small.
    """
    import torch

    among = max(1, inside) if getattr(_thread, "long", False) else SETTINGS.forwards_at_once
    torch.set_num_threads(max(1, cores() // among))  # torch keeps this number for each thread by itself


@contextlib.contextmanager
def long_text(tokens: int) -> Generator[None]:
    """Have this thread compute on all cores that no forward beside it takes, if a text is long enough to gain by it.

    Afterwards the memory that was freed goes back to the system: each visitor comes in a thread of their own, and the
    C library keeps for each what it freed.
    """
    if tokens < _LONG:
        yield
        return
    from attention_viz.trace.resting import give_back

    before, _thread.long = getattr(_thread, "long", False), True
    share_cores(FORWARDS.computing)
    try:
        yield
    finally:
        _thread.long = before
        share_cores(FORWARDS.computing)
        if not before:
            give_back()


# Every forward of every model passes here: `Runner` enters it, whoever asked for the run.
FORWARDS = Door(SETTINGS.forwards_at_once, share_cores)
# What is worked out of recorded runs has a door of its own, always entered first: it may wait for a value that somebody
# else's forward is bringing, and whoever waits so must not keep that forward from its place.
ANALYSES = Door(SETTINGS.forwards_at_once, share_cores)
