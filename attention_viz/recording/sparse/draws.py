"""Notes the random numbers that this thread draws, as LSH attention's rotations, and repeats them.

Nothing here sets a generator's state: other threads may draw from torch's own just then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True, eq=False)
class Draw:
    """One operation that drew random numbers.

    Attributes:
        state: its generator's state afterwards.
        by_numbers: whether its result depends on a tensor's numbers, too, as dropout's.
        own: whether it has a generator of its own, not torch's.
    """

    func: Any
    numbers: Tensor
    state: Tensor
    by_numbers: bool
    own: bool

    def repeats(self, other: "Draw") -> bool:
        """Return whether both drew the same from the same state."""
        return self.func is other.func and torch.equal(self.state, other.state) and self.numbers.equal(other.numbers)


class DrawMode(TorchDispatchMode):
    """Notes this thread's draws in `found`, and repeats earlier ones in their order."""

    # Else torch refuses to run `flex_attention` while this mode is open.
    supports_higher_order_operators = True

    def __init__(self, earlier: Sequence[Draw] = ()) -> None:
        """Repeat earlier draws from torch's generators; none if it should only note."""
        super().__init__()
        self.found = list[Draw]()
        self._earlier = [one for one in earlier if not one.own]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation, or repeat its draw."""
        named = kwargs or {}
        if not is_draw(func):
            return func(*args, **named)
        own = named.get("generator") is not None
        if self._earlier and not own:
            drawn = self._earlier.pop(0)
            written = _written(func, args, named)
            result = drawn.numbers.clone() if written is None else written
            if drawn.func is func and result.shape == drawn.numbers.shape:
                return result if written is None else written.copy_(drawn.numbers)
        result = func(*args, **named)
        numbers = result if isinstance(result, Tensor) else result[0]
        if numbers.device.type != "meta":
            state = named["generator"].get_state() if own else _state_on(numbers.device)
            self.found.append(Draw(func, numbers.detach().clone(), state, _reads_numbers(func, args, named), own))
        return result


def is_draw(func: Any) -> bool:
    """Return whether an operation draws random numbers."""
    # Kernels of attention could drop weights out, which evaluation mode forbids.
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) and "attention" not in str(func)


def _state_on(device: torch.device) -> Tensor:
    """Return the state of torch's own generator on a device."""
    if device.type == "cpu":
        return torch.get_rng_state()
    get_state = torch.get_device_module(device).get_rng_state
    return get_state() if device.type == "mps" else get_state(device)


def _written(func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Tensor | None:
    """Return the tensor that an operation writes into."""
    return next((value for one, value in _arguments(func, args, named) if one.is_write), None)


def _reads_numbers(func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    tensors = [one for one, value in _arguments(func, args, named) if isinstance(value, Tensor) and not one.is_write]
    return bool(tensors) and "_like" not in str(func)


def _arguments(func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return an operation's arguments with their values."""
    every = func._schema.arguments
    values = dict(zip((one.name for one in every), args, strict=False)) | dict(named)
    return [(one, values[one.name]) for one in every if one.name in values]
