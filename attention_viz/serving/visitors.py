"""A limited number of visitors at once; others wait in line."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# Seconds that a lost connection keeps its place: a browser reconnects within them.
_GRACE = 20.0
# Seconds after which a tab that waits takes the place of another that left its browser: a page that is loaded again is
# there within them, and has its own.
AGAIN = 5.0


@dataclass
class _Visitor:
    """One visitor, when last seen, and the browser; empty if unknown."""

    seen: float
    browser: str


class Visitors:
    """A server's visitors by arrival; the first ones have places."""

    def __init__(self, places: int, is_here: Callable[[str], bool], grace: float = _GRACE) -> None:
        """Begin empty; absent visitors keep their places for `grace` seconds."""
        self._places, self._is_here, self._grace = places, is_here, grace
        # In the order in which they came.
        self._known, self._lock = dict[str, _Visitor](), threading.Lock()

    def ahead(self, visitor: str, browser: str = "") -> int:
        """Return how many must leave before this visitor's place; a reloaded page takes its browser's own."""
        now = time.monotonic()
        with self._lock:
            for name, known in self._known.items():
                if name == visitor or self._is_here(name):
                    known.seen = now
            self._known = {name: one for name, one in self._known.items() if now - one.seen <= self._grace}
            comes = visitor not in self._known
            self._known.setdefault(visitor, _Visitor(now, browser))
            if self._before(visitor) >= self._places:
                self._take_over(visitor, now if comes else now - AGAIN)
            return max(0, self._before(visitor) - self._places + 1)

    def _before(self, visitor: str) -> int:
        return list(self._known).index(visitor)

    def _take_over(self, visitor: str, since: float) -> None:
        """Give a visitor the place of the first ahead who left this browser, unseen since."""
        mine, before = self._known[visitor], list(self._known)[: self._before(visitor)]
        same = (one for one in before if mine.browser and self._known[one].browser == mine.browser)
        left = next((one for one in same if not self._is_here(one) and self._known[one].seen <= since), None)
        if left is None:
            return
        line = [visitor if one == left else one for one in self._known if one != visitor]
        self._known = {one: mine if one == visitor else self._known[one] for one in line}
