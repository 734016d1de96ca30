"""Repeats the random numbers that a module draws from torch's own generators, as LSH attention's rotations."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

import torch
from torch import Tensor


def _generators() -> list[torch.Generator]:
    """Return the generators of all devices in use."""
    started = torch.cuda.is_available() and torch.cuda.is_initialized()
    return [torch.default_generator, *(torch.cuda.default_generators if started else ())]


@dataclass(frozen=True, eq=False)
class RandomStates:
    """What torch's generators will draw next."""

    states: tuple[tuple[torch.Generator, Tensor], ...]

    @classmethod
    def now(cls) -> "RandomStates":
        """Return the current states."""
        return cls(tuple((one, one.get_state()) for one in _generators()))

    @property
    def used(self) -> bool:
        """Whether something was drawn or seeded since."""
        return any(not torch.equal(one.get_state(), state) for one, state in self.states)

    def restore(self) -> None:
        """Draw the same numbers again from here on."""
        for one, state in self.states:
            _ = one.set_state(state)

    @contextlib.contextmanager
    def again(self) -> Generator[None]:
        """Draw the same numbers during the block, and go on as without it."""
        before = self.now()
        self.restore()
        try:
            yield
        finally:
            before.restore()
