"""Change a kernel of plain transformers by hand."""

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

IDS = (torch.arange(24)[None] * 7) % 97
Change = Callable[[Callable[..., Any], dict[str, Any]], Tensor]


@contextmanager
def changed_kernel(model: Any, name: str, change: Change) -> Generator[None]:
    """Put another function for a kernel into the family's own module."""
    layer = next(one for one in model.modules() if name in inspect.unwrap(type(one).forward).__globals__)
    namespace: dict[str, Any] = inspect.unwrap(type(layer).forward).__globals__
    kernel = namespace[name]
    signature = inspect.signature(kernel)

    def run(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        rest = bound.arguments.pop("kwargs", {})
        values = {**bound.arguments, **rest}
        output = change(functools.partial(kernel, **values), values)
        return (output, None) if isinstance(kernel(*arguments, **named), tuple) else output

    namespace[name] = run
    try:
        yield
    finally:
        namespace[name] = kernel


def own(found: Any) -> Tensor:
    return found[0] if isinstance(found, tuple) else found
