"""What is worked out once for each object, however many threads ask for it."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

__all__ = ["once", "once_for_each"]

_Of = TypeVar("_Of")
_Value = TypeVar("_Value")


class once(Generic[_Value]):
    """As `functools.cached_property`, with a lock for each object and property.

    In Python 3.11 that one has a single lock for the whole class, so that one object's slow answer keeps everybody
    waiting for any other's. What raises is asked anew the next time. The lock goes once the value is there.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        """Take the method that works the value out."""
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the name under which an object keeps the value."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "once[_Value]": ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> "once[_Value] | _Value":
        """Work the value out, unless another thread has meanwhile; from then on the object's own value is found."""
        if instance is None:
            return self
        attributes, lock_name = vars(instance), f"_lock of {self._name}"
        with attributes.setdefault(lock_name, threading.RLock()):
            if self._name not in attributes:
                attributes[self._name] = self._function(instance)
            attributes.pop(lock_name, None)
            return attributes[self._name]


def once_for_each(function: Callable[[_Of], _Value]) -> Callable[[_Of], _Value]:
    """As `once`, for a function of one object that can't have it as a property: kept for as long as that object is.

    Two threads that ask at the same time both work it out, and get the same. The value may not hold the object.
    """
    known = WeakKeyDictionary[_Of, _Value]()

    @wraps(function)
    def kept(of: _Of) -> _Value:
        found = known.get(of, None)
        if found is None:
            found = known.setdefault(of, function(of))
        return found

    return kept
