"""Whom a server has room for: so many visitors at once, and a line for those who come after."""

import threading
import time
from collections.abc import Callable

__all__ = ["Visitors"]

# Seconds that a place is kept for somebody whose connection was lost: a browser connects again within them.
_GRACE = 20.0


class Visitors:
    """The visitors of a server in the order in which they came; the first of them have a place, the others wait."""

    def __init__(self, places: int, is_here: Callable[[str], bool], grace: float = _GRACE) -> None:
        """Begin with nobody.

        Args:
            places: how many may use the app at once.
            is_here: whether a visitor is connected.
            grace: for how many seconds somebody who isn't keeps the place.
        """
        self._places, self._is_here, self._grace = places, is_here, grace
        # Each visitor, in the order in which they came, and when they were last seen.
        self._seen, self._lock = dict[str, float](), threading.Lock()

    def ahead(self, visitor: str) -> int:
        """How many have to leave before this visitor has a place, who is now in line; 0 where there is one.

        Args:
            visitor: by a name that nobody else has.
        """
        now = time.monotonic()
        with self._lock:
            self._seen |= {one: now for one in self._seen if one == visitor or self._is_here(one)}
            self._seen = {one: seen for one, seen in self._seen.items() if now - seen <= self._grace}
            self._seen.setdefault(visitor, now)
            return max(0, list(self._seen).index(visitor) - self._places + 1)
