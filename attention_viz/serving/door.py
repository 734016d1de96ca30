"""The door before whatever takes the machine's cores: so many at once, the others wait their turn."""

import threading
from types import TracebackType

from attention_viz.serving.settings import SETTINGS

__all__ = ["ANALYSES", "FORWARDS", "Door"]


class Door:
    """Places that are entered by `with`; whoever is inside may enter again without taking another."""

    def __init__(self, places: int) -> None:
        """Begin with all of them free."""
        self._free = threading.BoundedSemaphore(places)
        self._inside = threading.local()
        self._places, self._here, self._counting = places, 0, threading.Lock()

    @property
    def ahead(self) -> int:
        """How many are before whoever came now, inside or waiting; 0 where a place is free."""
        return self._here if self._here >= self._places else 0

    def __enter__(self) -> None:
        """Take a place, and wait for one where there is none."""
        depth = self._depth()
        if depth == 0:
            self._count(1)
            try:
                self._free.acquire()
            except BaseException:  # whoever waited was stopped
                self._count(-1)
                raise
        self._inside.depth = depth + 1

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Give the place back with the last of the entries."""
        self._inside.depth = self._depth() - 1
        if self._inside.depth == 0:
            self._free.release()
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self._here += more

    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)


# Every forward of every model passes here: `Runner` enters it, whoever asked for the run.
FORWARDS = Door(SETTINGS.forwards_at_once)
# What is worked out of recorded runs has a door of its own, always entered first: it may wait for a value that somebody
# else's forward is bringing, and whoever waits so must not keep that forward from its place.
ANALYSES = Door(SETTINGS.forwards_at_once)
