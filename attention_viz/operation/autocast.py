"""Torch's autocast: the thread's state that lowers products' precision."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import torch

__all__ = ["autocast_kinds", "without_autocast"]


def autocast_kinds() -> tuple[str, ...]:
    """Return this thread's device kinds inside `torch.autocast`, such as "cpu"."""
    accelerator = torch.accelerator.current_accelerator()
    kinds = ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    return tuple(kind for kind in kinds if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind))


@contextmanager
def without_autocast() -> Generator[None]:
    """Compute in the precision that the numbers have."""
    with ExitStack() as stack:
        for kind in autocast_kinds():
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield
