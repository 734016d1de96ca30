"""Shared values, each made once and limited by memory."""

import threading
import weakref
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


_all: "weakref.WeakSet[SharedCache[Any, Any]]" = weakref.WeakSet()
_all_lock = threading.Lock()


def discard_everywhere(which: Callable[[Any], bool]) -> None:
    """Discard from every cache, as `SharedCache.discard` does."""
    with _all_lock:
        caches = list(_all)
    for cache in caches:
        cache.discard(which)


class _Interrupted(Exception):
    """The maker was stopped, as by a leaving visitor; the next may succeed."""


class SharedCache(Generic[_Key, _Value]):
    """Thread-safe values by key, limited in bytes; least recently used go first."""

    def __init__(
        self, capacity: int, size_of: Callable[[_Value], int], on_evict: Callable[[_Key], None] = lambda _: None
    ) -> None:
        """Begin empty, with `capacity` bytes; the last used value always stays."""
        self._capacity, self._size_of, self._on_evict = capacity, size_of, on_evict
        # A value larger than everything counts as everything, so that it is kept, alone.
        self._values: LRUCache[_Key, _Value] = LRUCache(capacity, lambda value: min(size_of(value), capacity))
        self._pending: dict[_Key, Future[_Value]] = {}
        self._lock = threading.Lock()
        with _all_lock:
            _all.add(self)

    def __contains__(self, key: _Key) -> bool:
        """Return whether a key has a value."""
        with self._lock:
            return key in self._values

    @property
    def nbytes(self) -> int:
        """The values' total bytes."""
        with self._lock:
            return int(self._values.currsize)

    def peek(self, key: _Key) -> _Value | None:
        """Return a key's existing value."""
        with self._lock:
            return self._values.get(key)

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """Return a key's value: cached, from another thread's making, or made now.

        Errors reach all who wait; the next call retries. If only the maker is stopped, as by its visitor leaving, one
        of the waiting makes it.
        """
        while True:
            with self._lock:
                if key in self._values:
                    return self._values[key]
                found = self._pending.get(key)
                future = found or self._pending.setdefault(key, Future())
            if found is None:
                return self._make(key, make, future)
            try:
                return future.result()
            except _Interrupted:
                continue

    def make_room(self, size: int) -> None:
        """Evict before making a value, since both wouldn't fit."""
        with self._lock:
            evicted = self._shrink(size)
        self._report(evicted)

    def discard(self, which: Callable[[_Key], bool]) -> None:
        """Drop keys for which `which` is true, without `on_evict`; values being made still reach those who wait."""
        with self._lock:
            for key in [key for key in self._pending if which(key)]:
                del self._pending[key]
            for key in [key for key in self._values if which(key)]:
                del self._values[key]

    def _make(self, key: _Key, make: Callable[[], _Value], future: Future[_Value]) -> _Value:
        try:
            value = make()
        except BaseException as error:
            self._settle(key, future)
            future.set_exception(error if isinstance(error, Exception) else _Interrupted())
            raise
        try:
            evicted = self._store(key, value, future)
        finally:  # those who wait get it, whatever became of storing it
            self._settle(key, future)
            future.set_result(value)
        self._report(evicted)
        return value

    def _settle(self, key: _Key, future: Future[_Value]) -> None:
        with self._lock:
            if self._pending.get(key) is future:
                del self._pending[key]

    def _store(self, key: _Key, value: _Value, future: Future[_Value]) -> list[_Key]:
        size = self._size_of(value)
        with self._lock:
            if self._pending.get(key) is not future:  # dropped meanwhile
                return []
            evicted = self._shrink(size)
            self._values[key] = value
        return evicted

    def _shrink(self, size: int) -> list[_Key]:
        evicted: list[_Key] = []
        while self._values and self._values.currsize + min(size, self._capacity) > self._capacity:
            evicted.append(self._values.popitem()[0])
        return evicted

    def _report(self, evicted: list[_Key]) -> None:
        for key in evicted:
            self._on_evict(key)
