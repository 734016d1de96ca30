"""Finds models that give another output each time, since they draw random numbers."""

import sys
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.differences import Difference

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# Modules in a refusal.
_NAMED = 3


class _Draws(TorchDispatchMode):
    """Collects the modules that draw random numbers."""

    # Else torch refuses to run `flex_attention` while this mode is open.
    supports_higher_order_operators = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._paths = {id(module): path for path, module in model.named_modules()}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation, and note its module if it is random."""
        # Kernels of attention could drop weights out, which evaluation mode forbids.
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) and "attention" not in str(func):
            self._note()
        return func(*args, **(kwargs or {}))

    def _note(self) -> None:
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] -- the only way to ask
        while frame is not None:
            one = frame.f_locals.get("self")
            if isinstance(one, nn.Module) and id(one) in self._paths:
                self.found.setdefault(self._paths[id(one)] or "its forward", type(one).__name__)
                return
            frame = frame.f_back


def why_varying(runner: "Runner", inputs: Mapping[str, Tensor]) -> str:
    """Say that two runs of the same input differ, and where random numbers are drawn; "" if they don't differ."""
    first = runner.run_own(inputs)
    draws = _Draws(runner.model)
    with draws:
        second = runner.run_own(inputs)
    if first is None or second is None or not _differ(first, second):
        return ""
    several = [f"{path} ({name})" for path, name in draws.found.items()]
    more = f" and {len(several) - _NAMED} more modules" if len(several) > _NAMED else ""
    where = f"{', '.join(several[:_NAMED])}{more}"
    drawn = f"it draws random numbers in {where}" if where else "it isn't deterministic"
    # Some models take their random numbers as an input.
    fix = (
        'pass its numbers, inputs={…, "noise": …}'
        if "noise" in runner.named
        else "use a model or configuration that draws none"
    )
    return f"gives another output each time that it reads the same input, since {drawn}; {fix}"


def _differ(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return True
    found = Difference()
    found.add(one.nan_to_num(), other.nan_to_num())
    return found.relative > BOUNDS.get(one.dtype, 0.0)
