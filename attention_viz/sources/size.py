"""Find a model's size from its configuration before anything of it is loaded.

The model is built on torch's "meta" device, without numbers, and counted meanwhile: a configuration that asks for far
more than the weights file holds is refused after a moment, with no memory taken.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.sources.folders import CheckedFolder

_Module = TypeVar("_Module", bound=nn.Module)

# No published model asks for a larger number, nor for so many layers, experts or labels; vocabularies have 300,000.
_LARGEST_NUMBER, _MOST_PARTS = 10**9, 10_000
_PARTS = re.compile(r"layer|depth|block|expert|stage|label|tower|head", re.IGNORECASE)
_DEEPEST = 20
# The most characters of a configuration that a message repeats.
_LONGEST_QUOTED = 80

# While a model is built, tied matrices are counted once for each place they stand in: an encoder–decoder's embeddings
# in up to four. Buffers, which no file holds, such as tables of positions and masks, come on top.
_TIED, _SPARE = 4, 50_000_000
# A module without some hundred numbers of its own is rare, and building one takes time.
_FEW_MODULES, _NUMBERS_A_MODULE = 5_000, 100
# Parameters that no file needs to hold, such as a table of sines: two of 1,024 positions, 1,024 wide, and some more.
_COMPUTED = 5_000_000


def check_config(folder: CheckedFolder) -> None:
    """Refuse a configuration with numbers that no model has."""
    _check_numbers(folder.name, folder.config, 0)


def _check_numbers(name: str, config: Mapping[str, Any], depth: int) -> None:
    if depth > _DEEPEST:
        raise UnsupportedModel(f"config.json of {name} is nested more than {_DEEPEST} deep, as in no known model")
    for key, value in config.items():
        most = _MOST_PARTS if _PARTS.search(key) else _LARGEST_NUMBER
        several = cast("Sequence[object]", value) if isinstance(value, list) else [value]
        for one in several:
            if isinstance(one, dict):
                _check_numbers(name, cast("Mapping[str, Any]", one), depth + 1)
            elif isinstance(one, int | float) and not isinstance(one, bool) and abs(one) > most and "theta" not in key:
                raise UnsupportedModel(
                    f"config.json of {name} sets {_short(key)} to {_short(f'{one:,}')}; at most {most:,} is allowed"
                )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]}…"


@dataclass(eq=False)
class _Count:
    """The tensors and modules registered so far while a model is built, and the check on them."""

    check: Callable[["_Count"], None]
    modules: int = 0
    numbers: int = 0
    seen: set[int] = field(default_factory=set[int])

    def add(self, tensor: Tensor | None) -> None:
        """Count a parameter or buffer."""
        if tensor is not None:
            self.numbers += tensor.numel()
        self.check(self)

    def add_module(self) -> None:
        """Count a module."""
        self.modules += 1
        self.check(self)


# Each thread builds a model of its own, while the hooks below hear of all of them.
_current: ContextVar[_Count | None] = ContextVar("model under construction", default=None)
_installing = threading.Lock()
_installed: list[object] = []


def _install() -> None:
    """Install torch's registration hooks, only once because they are process-wide."""

    def hear_tensor(_module: nn.Module, _name: str, tensor: Any) -> None:
        count = _current.get()
        if count is not None:
            count.add(tensor)

    def hear_module(_module: nn.Module, _name: str, _part: nn.Module | None) -> None:
        count = _current.get()
        if count is not None:
            count.add_module()

    with _installing:
        if not _installed:
            _installed.append(register_module_parameter_registration_hook(hear_tensor))
            _installed.append(register_module_buffer_registration_hook(hear_tensor))
            _installed.append(register_module_module_registration_hook(hear_module))


def building(check: Callable[[], None]) -> "_Building":
    """Return a context that calls `check` repeatedly while this thread builds a model."""
    return _Building(_Count(lambda _: check()))


class _Building:
    def __init__(self, count: _Count) -> None:
        _install()
        self._count = count

    def __enter__(self) -> _Count:
        self._token = _current.set(self._count)
        return self._count

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def counting(folder: CheckedFolder) -> "_Building":
    """Return a context that refuses a model with more numbers than its weights file can fill."""
    most = _TIED * folder.numbers + _SPARE
    modules = _FEW_MODULES + folder.numbers // _NUMBERS_A_MODULE

    def check(count: _Count) -> None:
        if count.numbers > most:
            raise ModelNotFound(
                f"the weights of {folder.name} don't fit its config.json, which needs more than {most:,} numbers; "
                f"the file holds {folder.numbers:,}"
            )
        if count.modules > modules:
            raise ModelNotFound(
                f"the weights of {folder.name} don't fit its config.json, which needs more than {modules:,} parts; "
                f"the file holds {folder.numbers:,} numbers"
            )

    return _Building(_Count(check))


def check_size(folder: CheckedFolder, build: Callable[[], _Module]) -> _Module:
    """Build the model from its configuration, without numbers."""
    with counting(folder), torch.device("meta"):
        return build()


def size_of(model: nn.Module) -> int:
    """Return a model's bytes in float32."""
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return sum(tensor.numel() for tensor in tensors.values()) * torch.float32.itemsize


def refuse_larger(name: str, size: int, largest: int | None) -> None:
    """Refuse a model that takes more bytes than allowed; None for any size."""
    if largest is not None and size > largest:
        raise UnsupportedModel(
            f"{name} needs {size / 1e6:,.0f} MB of memory by its config.json; at most {largest / 1e6:,.0f} MB are "
            "allowed here"
        )


def refuse_surplus(folder: CheckedFolder, model: nn.Module) -> None:
    """Refuse a model with many more parameters than the file fills, which would take long to compute here.

    Names differ and some families join or cut tensors, so match by shape; leftover numbers may fill unmatched tensors.
    """
    left = Counter(folder.shapes)
    tied = cast("Mapping[str, str]", getattr(model, "all_tied_weights_keys", None) or {})
    unmatched = 0
    for key, parameter in model.named_parameters():
        if left[shape := tuple(parameter.shape)]:
            left[shape] -= 1
        elif key not in tied and "pooler" not in key.split("."):
            unmatched += parameter.numel()
    surplus = unmatched - sum(prod(shape) * count for shape, count in left.items())
    if surplus > _COMPUTED:
        raise ModelNotFound(
            f"the weights of {folder.name} don't fit its config.json, which needs {surplus:,} numbers that the file "
            f"doesn't hold; at most {_COMPUTED:,} are computed here"
        )
