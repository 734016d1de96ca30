"""Runs a model as its author wrote it: uncompiled, and outside a caller's autocast.

A compiled module can't be recorded, and compiling our recorder takes minutes; `torch.autocast` changes the numbers.
"""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import autocast_kinds, without_autocast

COMPILER = "torch._dynamo"

_eager_lock = threading.Lock()
_eager: list[Any] = []
_waiting = 0


class AsWritten(AbstractContextManager[None]):
    """Context that enters `door`, then runs models as written; reentrant, and safe in several threads."""

    def __init__(self, door: AbstractContextManager[object] | None = None) -> None:
        """Keep the context to enter first."""
        self.door, self._thread = door or nullcontext(), threading.local()

    def __enter__(self) -> None:
        """Enter the door, then switch off compilation and autocast in this thread."""
        with ExitStack() as stack:
            stack.enter_context(self.door)
            stack.enter_context(plainly())
            stack.enter_context(without_autocast())
            self._entered.append(stack.pop_all())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the caller's state."""
        self._entered.pop().__exit__(kind, error, traceback)

    @property
    def _entered(self) -> list[ExitStack]:
        if not hasattr(self._thread, "entered"):
            self._thread.entered = list[ExitStack]()
        return self._thread.entered


def has_compiled() -> bool:
    """Return whether this program has compiled anything."""
    return COMPILER in sys.modules and sys.modules[COMPILER].utils.counters["frames"]["total"] > 0


@contextmanager
def plainly(compiled: Callable[[], None] = lambda: None) -> Generator[None]:
    """Run compiled modules uncompiled; call `compiled` if the block itself compiled something.

    Torch has one switch for all threads: the first turns it, and the last turns it back.
    """
    global _waiting
    if COMPILER not in sys.modules:  # loading it takes seconds, and most programs never do
        yield
        if has_compiled():
            compiled()
        return
    with _eager_lock:
        _waiting += 1
        if _waiting == 1:
            _eager.append(torch.compiler.set_stance("force_eager"))
            _eager[-1].__enter__()
    try:
        yield
    finally:
        with _eager_lock:
            _waiting -= 1
            if _waiting == 0:
                _eager.pop().__exit__(None, None, None)


def refuse_autocast(name: str, model: nn.Module) -> None:
    """Refuse to run a model inside `torch.autocast`, which changes its numbers."""
    kinds = autocast_kinds()
    if not kinds:
        return
    for kind in sorted(set(kinds) & {parameter.device.type for parameter in model.parameters()}):
        dtype = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
        raise UnsupportedModel(
            f'{name} computes other numbers inside torch.autocast("{kind}", {dtype}); wrap and trace outside of it, or '
            f"convert the model with model.to(torch.{dtype})"
        )


def refuse_own_autocast(module: nn.Module, *tensors: Tensor) -> None:
    """Refuse a model that switches autocast on itself."""
    if len({tensor.dtype for tensor in tensors}) > 1 and tensors[0].device.type in autocast_kinds():
        raise UnsupportedModel(
            f"{type(module).__name__} runs inside its own torch.autocast, such as accelerate's prepare() adds; pass "
            "accelerator.unwrap_model(model, keep_fp32_wrapper=False)"
        )
