"""A property that is worked out once for each object, however many threads ask for it at the same time."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["once"]

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
