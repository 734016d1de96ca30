"""Runs torch's multi-head attention with another function inside, or within reach of a mode."""

import functools
import inspect
from types import FunctionType
from typing import Any


@functools.cache
def signature(func: Any) -> inspect.Signature:
    """Return a function's signature, looked up once."""
    return inspect.signature(func)


def with_inside(func: FunctionType, **names: object) -> FunctionType:
    """Return torch's function with some of its global names replaced; it doesn't hand itself to a mode again."""
    known = {**func.__globals__, "has_torch_function": _never, **names}
    made = FunctionType(func.__code__, known, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _never(_: object) -> bool:
    return False
