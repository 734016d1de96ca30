"""Compute values once per object across threads."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

_Of = TypeVar("_Of")
_Value = TypeVar("_Value")


class once(Generic[_Value]):
    """A `functools.cached_property` with a lock per object and property.

    Python 3.11's has one lock per class, so a slow object blocks all others. Errors aren't cached.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        """Set the method that computes the value."""
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Set the attribute name for the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "once[_Value]": ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> "once[_Value] | _Value":
        """Compute the value unless another thread has; later reads skip this."""
        if instance is None:
            return self
        attributes, lock_name = vars(instance), f"_lock of {self._name}"
        with attributes.setdefault(lock_name, threading.RLock()):
            if self._name not in attributes:
                attributes[self._name] = self._function(instance)
            attributes.pop(lock_name, None)
            return attributes[self._name]


def once_for_each(function: Callable[[_Of], _Value]) -> Callable[[_Of], _Value]:
    """Cache a function of one object for its lifetime; the value must not reference the object.

    Two threads may both compute it, but get one value.
    """
    known = WeakKeyDictionary[_Of, _Value]()

    @wraps(function)
    def kept(of: _Of) -> _Value:
        found = known.get(of, None)
        if found is None:
            found = known.setdefault(of, function(of))
        return found

    return kept
