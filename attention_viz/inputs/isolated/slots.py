"""How many processes for texts there are at once: whoever needs one more has an idle one ended, or waits."""

import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

__all__ = ["ProcessSlots", "Resting"]

# How often who waits looks whether to go on, in seconds.
_LOOK = 0.25


class Resting(Protocol):
    """What has a process.

    Attributes:
        used: a number that is larger the later it was used.
    """

    used: int

    def rest(self) -> bool:
        """End the process unless it is at work, and return whether it was ended."""
        ...


class ProcessSlots:
    """So many processes at once, idle ones included."""

    def __init__(self, most: int) -> None:
        """Begin with none in use."""
        self.most = most
        self.begin()

    def begin(self) -> None:
        """Begin with none in use, and nobody waiting."""
        self._users = weakref.WeakSet[Resting]()
        self._waiting = 0
        self._changed = threading.Condition()

    def take(self, user: Resting, seconds: float, check: Callable[[], None] = lambda: None) -> bool:
        """Take a slot before a process is started; the one that was unused for longest is ended if all are in use.

        Args:
            user: whose process it is; one that has a slot keeps it.
            check: called again and again meanwhile; what it raises ends the wait.

        Returns:
            Whether there was one in time.
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
        """Give a slot back once the process has ended."""
        with self._changed:
            self._users.discard(user)
            self._changed.notify()

    def is_wanted(self) -> bool:
        """Return whether somebody waits for a slot: whoever is done then ends its process, so that all get their turn.

        A process that is always at work would keep it for good.
        """
        return self._waiting > 0

    def _end_idle(self) -> bool:
        for other in sorted(self._users, key=lambda one: one.used):
            if other.rest():
                self._users.discard(other)
                return True
        return False
