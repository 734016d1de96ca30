"""Hooks on a model's modules during a block."""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable

from torch import nn

# Nobody may hook or unhook while a model is being copied. Held for microseconds, or as long as a copy of it takes.
HOOKS = threading.Lock()
# What a hook with named inputs gets beside the module: inputs, named inputs and output.
_GIVEN = 3


def as_function(hook: Callable[..., object]) -> Callable[..., object]:
    """Return a hook as a function, which a copy of its module leaves alone.

    The copy would take a method's owner along, with all that it holds; another thread may be recording in it just then.
    """
    return lambda *given: hook(*given)


@contextlib.contextmanager
def hooked(
    modules: Iterable[nn.Module],
    hear: Callable[..., object],
    enter: Callable[..., object] | None = None,
    *,
    first: bool = False,
    named: bool = False,
) -> Generator[None]:
    """Hook modules during the block.

    Args:
        hear: gets module, inputs, named inputs and output, and may return a new output.
        enter: gets module and inputs, and may return new inputs.
        first: whether `hear` comes before others' hooks.
        named: whether `enter` gets the named inputs, too.
    """

    def call(module: nn.Module, *given: object) -> object:
        # Torch forgets that a hook takes named inputs when it is removed, even if another thread's run calls it just
        # then. That run isn't this block's.
        return hear(module, *given) if len(given) == _GIVEN else None

    modules = list(modules)
    with HOOKS:
        handles = [module.register_forward_hook(call, prepend=first, with_kwargs=True) for module in modules]
        if enter is not None:
            begin = as_function(enter)
            handles += [module.register_forward_pre_hook(begin, with_kwargs=named) for module in modules]
    try:
        yield
    finally:
        with HOOKS:
            for handle in handles:
                handle.remove()
