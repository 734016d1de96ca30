"""Checks that a model is still the one that ran, before a trace asks it again.

Some numbers from all over every parameter are compared, since a change by `.data` leaves no other mark; a small change
may be missed, except in rows looked up. So are tensors' versions, plain settings, forward functions and others' hooks:
if only these differ, or a fidelity isn't ok, a second run decides.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from attention_viz.errors import TraceError
from attention_viz.inputs.module_tree import ModuleTree, buffers_of, own_names, parameters_of
from attention_viz.trace.provenance import Fidelity

_P = ParamSpec("_P")
_T = TypeVar("_T")
_PLAIN = frozenset({bool, int, float, str})
_HOLDING = frozenset({list, tuple, dict, set})
_SETTINGS = _PLAIN | _HOLDING
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
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
    def of(cls, tree: ModuleTree, rows: Tensor, checked: "_WeightState | None" = None) -> "_WeightState":
        """Read a model's state; of one that was `checked` just now, only the rows."""
        modules = tree.modules
        if checked is not None:
            tables = _tables(modules, parameters_of(modules))
            with torch.no_grad():
                looked_up = [_sampled_rows(table, rows) for table in tables]
            samples = checked.parameters[: len(checked.parameters) - len(tables)]
            return cls([*samples, *looked_up], checked.others, checked.settings)
        parameters, buffers = parameters_of(modules), buffers_of(modules)
        versions = [_version(one) for one in (*parameters, *buffers)]
        with torch.no_grad():
            numbers, others = _samples(parameters), _samples(buffers)
            numbers += [_sampled_rows(table, rows) for table in _tables(modules, parameters)]
        return cls(numbers, others, [*versions, *_settings(modules)])

    def same_parameters(self, other: "_WeightState") -> bool:
        return _equal(self.parameters, other.parameters)

    def same(self, other: "_WeightState") -> bool:
        return self.settings == other.settings and _equal(self.others, other.others)


@dataclass(eq=False)
class Unchanged:
    """The model behind a trace.

    Attributes:
        again: reruns it and returns whether the numbers repeat.
        just_checked: its state from a check just before the run, if there was one.
    """

    name: str
    tree: ModuleTree
    inputs: Mapping[str, Tensor]
    again: Callable[[], bool]
    just_checked: InitVar["_WeightState | None"] = None
    _rows: Tensor = field(init=False)
    _then: _WeightState = field(init=False)

    def __post_init__(self, just_checked: "_WeightState | None") -> None:
        """Read the model's state, unless it was just checked."""
        self._rows = _rows_read(self.inputs)
        self._then = _WeightState.of(self.tree, self._rows, None if self.tree.changes_itself else just_checked)

    def check(self) -> object:
        """Refuse a changed model; return its state, for a run that follows at once."""
        now = _WeightState.of(self.tree, self._rows)
        if not self._then.same_parameters(now):
            raise changed(self.name)
        if not self._then.same(now):
            if not self.again():
                raise changed(self.name)
            self.tree.changes_itself = True
        self._then = now
        return now

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


def checked_state(found: object) -> "_WeightState | None":
    """Return what `Unchanged.check` returned; None for anything else."""
    return found if isinstance(found, _WeightState) else None


def changed(name: str) -> TraceError:
    """Return the error for a changed model."""
    return TraceError(
        f"{name} has changed since this trace was made; trace the text again, or call trace.detached() before changing "
        "the model"
    )


def _rows_read(inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the rows that tokens or positions may look up."""
    longest = max((one.shape[-1] for one in inputs.values() if one.ndim), default=0)
    found = set(range(longest + _LATER))
    for one in inputs.values():
        if not one.is_floating_point():
            found.update(one.flatten().tolist())
    return torch.tensor(sorted(found))


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


def _samples(tensors: Sequence[Tensor]) -> list[bytes | None]:
    """Return each tensor's samples; those of one device and dtype leave it together."""
    together = dict[tuple[torch.device, torch.dtype], list[int]]()
    found = list[bytes | None]()
    for number, one in enumerate(tensors):
        plain = type(one) in (Tensor, nn.Parameter) and one.layout == torch.strided and one.is_contiguous()
        plain = plain and one.numel() > 0 and not (one.is_meta or one.is_quantized)
        if plain:
            together.setdefault((one.device, one.dtype), []).append(number)
        found.append(None if plain else _sampled(one))
    for numbers in together.values():
        some = [_every_so_many(tensors[number]) for number in numbers]
        whole = torch.cat(some).view(torch.uint8).cpu().numpy().tobytes()
        width, at = some[0].itemsize, 0
        for number, one in zip(numbers, some, strict=True):
            end = at + len(one) * width
            found[number], at = whole[at:end], end
    return found


def _every_so_many(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor's samples, (number,), as `_sampled` chooses them."""
    step = _step(tensor.shape)
    return tensor.as_strided((-(-tensor.numel() // step),), (step,))


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


@functools.lru_cache(maxsize=1 << 12)
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
        own = vars(module)
        yield id(module), id(own.get("forward")), id(type(module).forward)
        for name in own_names(own):
            value = own[name]
            if type(value) in _SETTINGS:
                yield name, value if type(value) in _PLAIN else _plain_values(value)
        for name in HOOKS:
            if hooks := own[name]:
                others = (hook for hook in hooks.values() if not getattr(hook, "__module__", "").startswith(_OURS))
                yield from map(id, others)


def _plain_values(value: Any) -> object:
    if type(value) is dict:
        return [(name, _plain_values(one)) for name, one in value.items()]
    if type(value) in _HOLDING:
        return [_plain_values(one) for one in value]
    return value if type(value) in _PLAIN else None


def _equal(some: list[bytes | None], others: list[bytes | None]) -> bool:
    both = zip(some, others, strict=False)
    return len(some) == len(others) and all(one == other for one, other in both if None not in (one, other))
