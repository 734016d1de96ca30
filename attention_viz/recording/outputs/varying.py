"""Finds models that give another output each time, since they draw random numbers."""

import contextlib
import sys
from collections.abc import Generator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.differences import Difference
from attention_viz.recording.interception.outside import ElsewhereError
from attention_viz.recording.outputs.breaking import family_of
from attention_viz.recording.sparse.draws import is_draw

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# Some models take their random numbers as an input, or can be told by one to draw none.
_INPUTS = {"noise": '"noise": …', "sample": '"sample": torch.tensor([False])'}
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
        if is_draw(func):
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


@contextlib.contextmanager
def naming_draws(runner: "Runner", inputs: Mapping[str, Tensor]) -> Generator[None]:
    """Say in a refusal that no two runs are the same, unless the model broke or has no attention here."""
    try:
        yield
    except UnsupportedModel as error:
        broke = error.__cause__ is not None and not isinstance(error.__cause__, AttentionVizError)
        if not (broke or isinstance(error, ElsewhereError)) and (varies := _why_varying(runner, inputs)):
            raise UnsupportedModel(f"{family_of(runner.model)} {varies}") from error
        raise


def _why_varying(runner: "Runner", inputs: Mapping[str, Tensor]) -> str:
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
    ways = [way for name, way in _INPUTS.items() if name in runner.named]
    fix = f"pass inputs={{…, {' or '.join(ways)}}}" if ways else "use a model or configuration that draws none"
    return f"gives another output each time that it reads the same input, since {drawn}; {fix}"


def _differ(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return True
    found = Difference()
    found.add(one.nan_to_num(), other.nan_to_num())
    return found.relative > BOUNDS.get(one.dtype, 0.0)
