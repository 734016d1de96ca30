"""Copies a model so that its modules never call the originals."""

import copy
from collections import OrderedDict
from collections.abc import Iterable
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from torch import nn

_Module = TypeVar("_Module", bound=nn.Module)
# What a function may look modules up in.
_CONTAINERS: tuple[type[Any], ...] = (dict, list, set, frozenset, tuple, WeakKeyDictionary)
_EMPTY = object()


def copied(model: _Module, memo: dict[int, Any]) -> _Module:
    """Copy a model with its hooks and replaced methods.

    Python doesn't copy functions: a replaced `model.forward` or a hook would use the original modules, so each is
    rebuilt.
    """
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        for name, value in vars(module).items():
            if isinstance(value, FunctionType):
                vars(module)[name] = _rebound(value, memo)
            elif isinstance(value, OrderedDict) and name.endswith("hooks"):
                hooks = cast("OrderedDict[Any, Any]", value)
                hooks.update([(key, _rebound(hook, memo)) for key, hook in hooks.items()])
    return twin


def _rebound(value: Any, memo: dict[int, Any]) -> Any:
    """Return a value rebuilt around copied modules; itself if it has none."""
    if isinstance(value, nn.Module):
        return memo.get(id(value), value)
    if isinstance(value, MethodType):
        owner = _rebound(value.__self__, memo)
        return value if owner is value.__self__ else MethodType(value.__func__, owner)
    if not isinstance(value, (FunctionType, *_CONTAINERS)):
        return value
    if id(value) not in memo:
        memo[id(value)] = value  # it may hold itself
        memo[id(value)] = _function(value, memo) if isinstance(value, FunctionType) else _container(value, memo)
    return memo[id(value)]


def _container(container: Any, memo: dict[int, Any]) -> Any:
    """Return a container with copies for modules, their methods and ids; not recursive."""

    def inside(value: Any) -> Any:
        if type(value) is int:
            module = memo.get(value)
            return id(module) if isinstance(module, nn.Module) else value
        return value if isinstance(value, _CONTAINERS) else _rebound(value, memo)

    if isinstance(container, dict | WeakKeyDictionary):
        pairs = list(cast("dict[Any, Any]", container).items())
        made: list[Any] = [(inside(key), inside(value)) for key, value in pairs]
        same = all(made[at][side] is pairs[at][side] for at in range(len(pairs)) for side in (0, 1))
    else:
        items = list(cast("Iterable[Any]", container))
        made = [inside(item) for item in items]
        same = all(one is other for one, other in zip(made, items, strict=True))
    if same or (isinstance(container, tuple) and type(container) is not tuple):  # a named tuple takes things singly
        return container
    if isinstance(container, tuple | frozenset):
        return type(container)(made)
    anew = copy.copy(container)
    anew.clear()
    (anew.extend if isinstance(anew, list) else anew.update)(made)
    return anew


def _function(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """Return a function rebuilt around copied modules; itself if it reaches none."""
    held = tuple(_content(cell) for cell in function.__closure__ or ())
    inner = tuple(_rebound(one, memo) for one in held)
    # In a notebook, models and their methods are global. Functions aren't followed: they lead through whole libraries.
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    held_there = {name: one for name, one in named.items() if isinstance(one, (nn.Module, MethodType, *_CONTAINERS))}
    outer = {name: made for name, one in held_there.items() if (made := _rebound(one, memo)) is not one}
    defaults, named_defaults = function.__defaults__ or (), function.__kwdefaults__ or {}
    made_defaults = tuple(_rebound(one, memo) for one in defaults)
    made_named = {name: _rebound(one, memo) for name, one in named_defaults.items()}
    pairs = zip(
        (*inner, *made_defaults, *made_named.values()), (*held, *defaults, *named_defaults.values()), strict=True
    )
    if not outer and all(made is one for made, one in pairs):
        return function
    cells = tuple(CellType() if one is _EMPTY else CellType(one) for one in inner)
    names = {**function.__globals__, **outer} if outer else function.__globals__
    made = FunctionType(function.__code__, names, function.__name__, made_defaults or None, cells)
    made.__kwdefaults__ = made_named or None
    made.__dict__.update(function.__dict__)
    return made


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return _EMPTY
