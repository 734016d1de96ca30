"""Copies of a model's modules, which call each other and never the modules they were copied from."""

import copy
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar

from torch import nn

__all__ = ["copied"]

_Module = TypeVar("_Module", bound=nn.Module)


def copied(model: _Module, memo: dict[int, Any]) -> _Module:
    """Copy a model.

    Python doesn't copy functions. One that replaced a method, such as `model.forward = torch.compile(model.forward)` or
    a decorated `forward`, would run the original model inside the copy, so it is made anew around the copy.

    Args:
        model: what to copy.
        memo: as for `copy.deepcopy`: by an object's identity, its copy.
    """
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        for name, value in vars(module).items():
            if isinstance(value, FunctionType):
                vars(module)[name] = _rebound(value, memo)
    return twin


def _rebound(value: Any, memo: dict[int, Any]) -> Any:
    """Return a module's copy; a method or function with copies of all modules that it holds; else the thing itself."""
    if isinstance(value, nn.Module):
        return memo.get(id(value), value)
    if isinstance(value, MethodType):
        owner = _rebound(value.__self__, memo)
        return value if owner is value.__self__ else MethodType(value.__func__, owner)
    if not isinstance(value, FunctionType):
        return value
    if id(value) not in memo:
        memo[id(value)] = value  # it may hold itself
        memo[id(value)] = _function(value, memo)
    return memo[id(value)]


def _function(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """Return a function with copies in place of the modules that it reaches; itself if it reaches none."""
    held = tuple(_content(cell) for cell in function.__closure__ or ())
    inner = tuple(_rebound(one, memo) for one in held)
    # In a notebook, models and their methods are global. Functions aren't followed: they lead through whole libraries.
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    held_there = {name: one for name, one in named.items() if isinstance(one, nn.Module | MethodType)}
    outer = {name: made for name, one in held_there.items() if (made := _rebound(one, memo)) is not one}
    if not outer and all(made is one for made, one in zip(inner, held, strict=True)):
        return function
    cells = tuple(CellType() if one is _EMPTY else CellType(one) for one in inner)
    names = {**function.__globals__, **outer} if outer else function.__globals__
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


_EMPTY = object()


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return _EMPTY
