"""Checks that a model is still the one that ran, before a trace asks it again.

Some numbers from all over every parameter are compared, since a change by `.data` leaves no other mark; a small change
may be missed, except in rows looked up. So are tensors' versions, plain settings, forward functions and others' hooks:
if only these differ, or a fidelity isn't ok, a second run decides.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from attention_viz.errors import TraceError
from attention_viz.trace.provenance import Fidelity

_P = ParamSpec("_P")
_T = TypeVar("_T")
# What every module has, so that its other attributes are its own settings.
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_PLAIN = frozenset({bool, int, float, str})
_HOLDING = frozenset({list, tuple, dict, set})
_SETTINGS = _PLAIN | _HOLDING
_OURS = __name__.partition(".")[0]
# So many numbers of a parameter are compared at most: reading more of them would cost a tenth of a short text's run.
_SOME = 256
# So many numbers of each row that was looked up; and tables of positions begin so many rows later in some families.
_OF_ROW, _LATER = 4, 4


@dataclass(frozen=True, eq=False)
class _WeightState:
    """The compared state, as bytes.

    Attributes:
        parameters: samples, and some of each row looked up.
        others: samples of buffers, which some models change.
        settings: versions of tensors; modules' settings, forwards and hooks.
    """

    parameters: list[bytes | None]
    others: list[bytes | None]
    settings: list[object]

    @classmethod
    def of(cls, model: nn.Module, rows: Tensor) -> "_WeightState":
        modules = list(model.modules())
        parameters, buffers = (_tensors(getattr(one, name) for one in modules) for name in ("_parameters", "_buffers"))
        versions = [_version(one) for one in (*parameters, *buffers)]
        with torch.no_grad():
            numbers, others = ([_sampled(one) for one in some] for some in (parameters, buffers))
            numbers += [_sampled_rows(table, rows) for table in _tables(modules, parameters)]
        return cls(numbers, others, [*versions, *_settings(modules)])

    def same_parameters(self, other: "_WeightState") -> bool:
        return _equal(self.parameters, other.parameters)

    def same(self, other: "_WeightState") -> bool:
        return self.settings == other.settings and _equal(self.others, other.others)


@dataclass(eq=False)
class Unchanged:
    """The model behind a trace; `again` reruns it and returns whether the numbers repeat."""

    name: str
    model: nn.Module
    inputs: Mapping[str, Tensor]
    again: Callable[[], bool]
    _rows: Tensor = field(init=False)
    _then: _WeightState = field(init=False)

    def __post_init__(self) -> None:
        """Read the model's state."""
        self._rows = _rows_read(self.inputs)
        self._then = _WeightState.of(self.model, self._rows)

    def check(self) -> None:
        """Refuse a changed model."""
        now = _WeightState.of(self.model, self._rows)
        if not self._then.same_parameters(now) or not (self._then.same(now) or self.again()):
            raise changed(self.name)
        self._then = now

    def confirm(self) -> None:
        """Refuse a changed model, even if only a second run shows it."""
        self.check()
        if not self.again():
            raise changed(self.name)

    def measured(self, measure: Callable[[], Fidelity]) -> Callable[[], Fidelity]:
        """Wrap a measurement, so that a changed model isn't taken for an error."""

        def measure_checked() -> Fidelity:
            self.check()
            found = measure()
            if not found.ok:
                self.confirm()
            return found

        return measure_checked

    def checked(self, compute: Callable[_P, _T]) -> Callable[_P, _T]:
        """Wrap a function to check the model first."""

        def compute_checked(*args: _P.args, **named: _P.kwargs) -> _T:
            self.check()
            return compute(*args, **named)

        return compute_checked


def changed(name: str) -> TraceError:
    """Return the error for a changed model."""
    return TraceError(
        f"{name} has changed since this trace was made; trace the text again, or call trace.detached() before changing "
        "the model"
    )


def _tensors(of_modules: Iterable[Mapping[str, Tensor | None]]) -> list[Tensor]:
    """List each tensor once, even if modules share it."""
    return list({id(one): one for named in of_modules for one in named.values() if one is not None}.values())


def _rows_read(inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the rows that tokens or positions may look up."""
    whole = [one.detach().cpu().flatten() for one in inputs.values() if not one.is_floating_point()]
    longest = max((one.shape[-1] for one in inputs.values() if one.ndim), default=0)
    return torch.cat([*(one.long() for one in whole), torch.arange(longest + _LATER)]).unique()


def _tables(modules: Iterable[nn.Module], parameters: Iterable[Tensor]) -> list[Tensor]:
    """List embeddings, and matrices with as many rows."""
    counts = {module.num_embeddings for module in modules if isinstance(module, nn.Embedding)}
    return [one for one in parameters if one.ndim == 2 and len(one) in counts]


def _sampled_rows(table: Tensor, rows: Tensor) -> bytes | None:
    """Return samples of each row; None if not in memory."""
    if type(table) not in (Tensor, nn.Parameter) or table.layout != torch.strided or table.is_meta:
        return None
    there = rows[(rows >= 0) & (rows < len(table))].to(table.device)
    width = table.shape[1]
    columns = torch.arange(0, width, max(1, width // _OF_ROW), device=table.device)
    some = table.detach()[there[:, None], columns].contiguous()
    return some.view(torch.uint8).cpu().numpy().tobytes()


def _sampled(tensor: Tensor) -> bytes | None:
    """Return a tensor's samples; None if not in memory, as offloaded."""
    if type(tensor) not in (Tensor, nn.Parameter) and hasattr(tensor, "__tensor_flatten__"):
        inside: Any = tensor
        parts = [_sampled(getattr(tensor, name)) for name in inside.__tensor_flatten__()[0]]
        return b"".join(one or b"" for one in parts)
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        return None
    some = tensor.detach().reshape(-1)[:: _step(tensor.shape)].contiguous()
    return some.view(torch.uint8).cpu().numpy().tobytes()


def _step(shape: torch.Size) -> int:
    """Return a sampling step coprime to the last axis, to reach all columns."""
    step = max(1, math.prod(shape) // _SOME)
    while math.gcd(step, shape[-1] if shape else 1) > 1:
        step -= 1
    return step


def _version(tensor: Tensor) -> int | None:
    return None if tensor.is_inference() or tensor.is_meta else tensor._version


def _settings(modules: Iterable[nn.Module]) -> Iterator[object]:
    for module in modules:
        yield id(module), id(vars(module).get("forward")), id(type(module).forward)
        for name, value in vars(module).items():
            if name not in _OF_EVERY_MODULE and type(value) in _SETTINGS:
                yield name, _plain_values(value)
        for hooks in (vars(module)[name] for name in ("_forward_hooks", "_forward_pre_hooks")):
            yield from (id(hook) for hook in hooks.values() if not getattr(hook, "__module__", "").startswith(_OURS))


def _plain_values(value: Any) -> object:
    if type(value) is dict:
        return [(name, _plain_values(one)) for name, one in value.items()]
    if type(value) in _HOLDING:
        return [_plain_values(one) for one in value]
    return value if type(value) in _PLAIN else None


def _equal(some: list[bytes | None], others: list[bytes | None]) -> bool:
    both = zip(some, others, strict=False)
    return len(some) == len(others) and all(one == other for one, other in both if None not in (one, other))
