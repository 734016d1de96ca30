"""What a room shares: each thing made once, however many ask for it at a time, and never more than there is room."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["Kept"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Kept(Generic[_Key, _Value]):
    """Things by key, safe for many threads; where the room is full, the one unused for longest goes first."""

    def __init__(
        self,
        room: int,
        weigh: Callable[[_Value], int] = lambda _: 1,
        let_go: Callable[[_Key], None] = lambda _: None,
    ) -> None:
        """Begin empty.

        Args:
            room: how much all together may weigh; the one used last stays whatever it weighs.
            weigh: how much one takes.
            let_go: is told of each key that had to go, once it has gone.
        """
        self._room, self._weigh, self._let_go = room, weigh, let_go
        self._things: OrderedDict[_Key, _Value] = OrderedDict()
        self._weights: dict[_Key, int] = {}
        self._under_way: dict[_Key, Future[_Value]] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: _Key) -> bool:
        """Whether it is there already."""
        with self._lock:
            return key in self._things

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The thing of that key: kept from before, waited for where somebody is making it, or made now.

        What goes wrong while it is made is told to all who wait, and tried again by the next who asks.
        """
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
            waiting, future = key in self._under_way, self._under_way.setdefault(key, Future())
        if waiting:
            return future.result()
        try:
            thing = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[key]
            future.set_exception(error)
            raise
        self._keep(key, thing)
        future.set_result(thing)
        return thing

    def make_room(self, weight: int) -> None:
        """Let go of what has to go before something of that weight is made: old and new would not fit together."""
        with self._lock:
            gone = self._shrink(self._room - weight)
        self._tell(gone)

    def forget(self, which: Callable[[_Key], bool]) -> None:
        """Let go of all keys of a kind, without telling anybody."""
        with self._lock:
            for key in [key for key in self._things if which(key)]:
                del self._things[key], self._weights[key]

    def _keep(self, key: _Key, thing: _Value) -> None:
        with self._lock:
            del self._under_way[key]
            weight = self._weigh(thing)
            gone = self._shrink(self._room - weight)
            self._things[key], self._weights[key] = thing, weight
        self._tell(gone)

    def _shrink(self, room: int) -> list[_Key]:
        gone: list[_Key] = []
        while self._things and sum(self._weights.values()) > room:
            key, _ = self._things.popitem(last=False)
            del self._weights[key]
            gone.append(key)
        return gone

    def _tell(self, gone: list[_Key]) -> None:
        for key in gone:
            self._let_go(key)
