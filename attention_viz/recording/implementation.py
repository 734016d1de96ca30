"""Switches a model to our attention and evaluation, and back."""

import contextlib
import importlib
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import cast

from torch import nn

from attention_viz.recording.as_written import COMPILER
from attention_viz.recording.interception.plan import NO_PLAN, InterceptionPlan
from attention_viz.recording.interface import OURS
from attention_viz.sources.huggingface import PreTrainedConfig, PreTrainedModel

FLEX = "flex_attention"
# What decides the implementation, without the public setter's side effects: that one is checked and logged.
IMPLEMENTATION = "_attn_implementation_internal"


@dataclass(eq=False)
class _Loan:
    """One object's original field, and how many still need ours."""

    owner: object
    found: object
    count: int = 0


class _Loans:
    """One field of shared objects: ours while anyone needs it; the last to leave restores it."""

    def __init__(self, field: str, value: object) -> None:
        self._field = field
        self._value = value
        # How many times owners were borrowed so far.
        self.taken = 0
        # By identity; the loan keeps its owner alive, so that an identity can't be another's meanwhile.
        self._loans: dict[int, _Loan] = {}

    def lent(self, owners: Iterable[object]) -> list[object]:
        """Return the owners whose field is ours."""
        return [owner for owner in owners if id(owner) in self._loans] if self._loans else []

    def found(self, owner: object) -> object:
        """Return an owner's original field."""
        loan = self._loans.get(id(owner))
        return getattr(owner, self._field, None) if loan is None else loan.found

    def take(self, owners: Iterable[object]) -> None:
        self.taken += 1
        for owner in owners:
            loan = self._loans.get(id(owner))
            if loan is None:
                loan = self._loans[id(owner)] = _Loan(owner, getattr(owner, self._field))
                setattr(owner, self._field, self._value)
            loan.count += 1

    def give_back(self, owners: Iterable[object]) -> None:
        for owner in owners:
            loan = self._loans[id(owner)]
            loan.count -= 1
            if not loan.count:
                setattr(owner, self._field, loan.found)
                del self._loans[id(owner)]


# For all models of the process, since two of them may share a configuration or modules. Held for microseconds only.
_LOCK = threading.Lock()
_OURS = _Loans(IMPLEMENTATION, OURS)
_EVALUATION = _Loans("training", False)


@dataclass(frozen=True, eq=False)
class Switch:
    """Switches one model to our attention, for any number of threads at once."""

    configs: tuple[PreTrainedConfig, ...]
    modules: tuple[nn.Module, ...]
    plan: InterceptionPlan = NO_PLAN

    @classmethod
    def of(cls, model: PreTrainedModel) -> "Switch":
        """Find the configurations and modules to switch."""
        return cls(configurations(model), tuple(model.modules()))

    def found(self) -> list[tuple[PreTrainedConfig, str | None]]:
        """Return each configuration with its own attention implementation; None if it names none."""
        with _LOCK:
            own = [(config, _OURS.found(config)) for config in self.configs]
        if any(name == FLEX for _, name in own):
            # It compiles itself for each new length, unless the compiler is there to be switched off.
            importlib.import_module(COMPILER)
        return [(config, name if isinstance(name, str) else None) for config, name in own]

    @contextlib.contextmanager
    def ours(self) -> Generator[None]:
        """Run with our attention and in evaluation mode."""
        configs = () if self.plan.keeps_own else self.configs
        with _LOCK:
            training = [*(module for module in self.modules if module.training), *_EVALUATION.lent(self.modules)]
            _EVALUATION.take(training)
            _OURS.take(configs)
        try:
            with self.plan.listening(self.modules[0]):
                yield
        finally:
            with _LOCK:
                _OURS.give_back(configs)
                _EVALUATION.give_back(training)

    @contextlib.contextmanager
    def own(self) -> Generator[Callable[[], bool]]:
        """Run in evaluation with the model's own attention; yield a check whether another thread switched it."""
        with _LOCK:
            before, lent = _OURS.taken, _OURS.lent(self.configs)
            training = [*(module for module in self.modules if module.training), *_EVALUATION.lent(self.modules)]
            _EVALUATION.take(training)
        try:
            yield lambda: bool(lent) or _OURS.taken != before
        finally:
            with _LOCK:
                _EVALUATION.give_back(training)


def configurations(model: PreTrainedModel) -> tuple[PreTrainedConfig, ...]:
    """Return every distinct configuration, nested ones too."""
    found: dict[int, PreTrainedConfig] = {}
    queue: list[object] = [value for module in model.modules() for value in vars(module).values()]
    while queue:
        config = queue.pop()
        if isinstance(config, PreTrainedConfig) and id(config) not in found:
            found[id(config)] = config
            queue += [getattr(config, name, None) for name in cast("dict[str, object]", config.sub_configs)]
    return tuple(found.values())
