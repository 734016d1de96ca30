"""The door before whatever takes the machine's cores: so many at once, the others wait their turn."""

import contextlib
import threading
from collections.abc import Callable, Generator
from types import TracebackType

from attention_viz.serving.settings import SETTINGS

__all__ = ["ANALYSES", "FORWARDS", "Door"]


# Seconds after which whoever waits hears how many are still before them.
_PAUSE = 1.0


class Door:
    """Places that are entered by `with`, in the order of coming; whoever is inside may enter again without another."""

    def __init__(self, places: int) -> None:
        """Begin with all of them free."""
        self._inside = threading.local()
        self._places = places
        # Everybody who is inside or waits, in the order of coming: the first ones are those inside.
        self._line, self._moved = list[object](), threading.Condition()

    @property
    def ahead(self) -> int:
        """How many are before whoever came now, inside or waiting; 0 where a place is free."""
        with self._moved:
            return len(self._line) if len(self._line) >= self._places else 0

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
            self._inside.ticket = ticket = object()
            with self._moved:
                self._line.append(ticket)
            try:
                self._wait(ticket)
            except BaseException:  # whoever waited was stopped
                self._leave(ticket)
                raise
        self._inside.depth = depth + 1

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Give the place back with the last of the entries."""
        self._inside.depth = self._depth() - 1
        if self._inside.depth == 0:
            self._leave(self._inside.ticket)

    def _wait(self, ticket: object) -> None:
        tell = getattr(self._inside, "tell", None)
        while True:
            with self._moved:
                ahead = self._line.index(ticket)
                if ahead < self._places:
                    return
                if tell is None:
                    self._moved.wait()
                    continue
            # Without the lock: to tell somebody takes as long as it takes.
            tell(ahead)
            with self._moved:
                self._moved.wait_for(lambda: self._line.index(ticket) < self._places, _PAUSE)

    def _leave(self, ticket: object) -> None:
        with self._moved:
            self._line.remove(ticket)
            self._moved.notify_all()

    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)


# Every forward of every model passes here: `Runner` enters it, whoever asked for the run.
FORWARDS = Door(SETTINGS.forwards_at_once)
# What is worked out of recorded runs has a door of its own, always entered first: it may wait for a value that somebody
# else's forward is bringing, and whoever waits so must not keep that forward from its place.
ANALYSES = Door(SETTINGS.forwards_at_once)
