"""A model's modules, listed once until they change: listing them takes as long as a layer of a small model."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

# What every module has, so that its other attributes are its own settings.
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


@dataclass(frozen=True, eq=False)
class _ModuleList:
    """The modules, each once, and what shows that they are still the model's.

    Attributes:
        numbers: how many numbers their parameters had.
        counts: how many children each has.
        parents: the modules with children, and these.
    """

    modules: tuple[nn.Module, ...]
    numbers: int
    counts: list[int]
    parents: list[tuple[nn.Module, list[nn.Module | None]]]

    @classmethod
    def of(cls, model: nn.Module) -> "_ModuleList":
        modules = tuple(model.modules())
        parents = [(one, [*_children(one).values()]) for one in modules if _children(one)]
        return cls(
            modules,
            sum(one.numel() for one in parameters_of(modules)),
            [len(_children(one)) for one in modules],
            parents,
        )

    @property
    def is_current(self) -> bool:
        """Whether no module was added, removed or replaced; modules are equal only to themselves."""
        if [len(_children(one)) for one in self.modules] != self.counts:
            return False
        return all([*_children(one).values()] == children for one, children in self.parents)


@dataclass(eq=False)
class ModuleTree:
    """One model's modules."""

    model: nn.Module
    # Whether a run was found to change buffers or settings of the model.
    changes_itself: bool = False
    _found: _ModuleList | None = field(default=None)

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """Each module once, the model first, in the order of `model.modules()`."""
        return self._current.modules

    @property
    def numbers(self) -> int:
        """How many numbers the parameters had when the modules were listed."""
        return self._current.numbers

    @property
    def _current(self) -> _ModuleList:
        found = self._found
        if found is None or not found.is_current:
            found = self._found = _ModuleList.of(self.model)
        return found


def parameters_of(modules: Sequence[nn.Module]) -> list[Tensor]:
    """Return each parameter once, in the order of `model.parameters()`."""
    return _each_once(one for module in modules for one in vars(module)["_parameters"].values())


def buffers_of(modules: Sequence[nn.Module]) -> list[Tensor]:
    """Return each buffer once, in the order of `model.buffers()`."""
    return _each_once(one for module in modules for one in vars(module)["_buffers"].values())


def own_names(attributes: Iterable[str]) -> tuple[str, ...]:
    """Return those of a module's attributes that not every module has."""
    return _own_names(tuple(attributes))


def first_tensor(model: nn.Module) -> Tensor | None:
    """Return a model's first parameter, or its first buffer; None without any."""
    return next(itertools.chain(model.parameters(), model.buffers()), None)


@functools.lru_cache(maxsize=1 << 12)  # modules of a class share theirs
def _own_names(attributes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in attributes if name not in _OF_EVERY_MODULE)


def _each_once(tensors: Iterator[Tensor | None]) -> list[Tensor]:
    return list({id(one): one for one in tensors if one is not None}.values())


def _children(module: nn.Module) -> dict[str, nn.Module | None]:
    return vars(module)["_modules"]
