"""Which attention implementation a model in memory runs with, switched for a run and put back after it."""

import contextlib
import threading
from collections import deque
from collections.abc import Generator
from typing import cast
from weakref import WeakValueDictionary

from torch import nn
from transformers import PreTrainedModel
from transformers.configuration_utils import PreTrainedConfig

__all__ = ["Gate", "gate_of"]


class Gate:
    """Lets threads run a model under one implementation together, and makes those that want another wait their turn.

    The implementation is a field of the model's configuration, which every thread shares: so it is changed only while
    nobody is inside, in the order of asking, and put back when the last one leaves. So is training mode.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Find every configuration that decides an implementation somewhere in the model."""
        self._model = model
        self._configs = _configs(model)
        self._found: list[str | None] = []
        self._training: list[nn.Module] = []
        self._turn = threading.Condition()
        self._waiting: deque[object] = deque()
        self._running: str | None = None
        self._inside = 0

    @contextlib.contextmanager
    def running(self, implementation: str) -> Generator[None]:
        """Run under that implementation, in evaluation mode, beside others who want the same."""
        self._enter(implementation)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, implementation: str) -> None:
        ticket = object()
        with self._turn:
            self._waiting.append(ticket)
            try:
                self._turn.wait_for(
                    lambda: self._waiting[0] is ticket and (not self._inside or self._running == implementation)
                )
            finally:
                self._waiting.remove(ticket)
                self._turn.notify_all()
            if not self._inside:
                self._switch(implementation)
            self._inside += 1

    def _leave(self) -> None:
        with self._turn:
            self._inside -= 1
            if not self._inside:
                self._put_back()
            self._turn.notify_all()

    def _switch(self, implementation: str) -> None:
        self._running = implementation
        self._found = [config._attn_implementation_internal for config in self._configs]  # pyright: ignore[reportPrivateUsage]
        self._training = [module for module in self._model.modules() if module.training]
        for config in self._configs:
            config._attn_implementation_internal = implementation  # pyright: ignore[reportPrivateUsage]
        for module in self._training:
            module.training = False

    def _put_back(self) -> None:
        for config, found in zip(self._configs, self._found, strict=True):
            config._attn_implementation_internal = found  # pyright: ignore[reportPrivateUsage]
        for module in self._training:
            module.training = True


# By the identity of the configuration, since that is what is switched: two wrappers of one model, or two models that
# share a configuration, have to take turns as well. The gate keeps its model alive, so an identity can't be reused.
_GATES: WeakValueDictionary[int, Gate] = WeakValueDictionary()
_GATES_LOCK = threading.Lock()


def gate_of(model: PreTrainedModel) -> Gate:
    """The one gate of a model in memory."""
    with _GATES_LOCK:
        gate = _GATES.get(id(model.config))
        if gate is None:
            gate = _GATES[id(model.config)] = Gate(model)
        return gate


def _configs(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """Every distinct configuration in a model: its own, its parts', and those nested in either."""
    found: dict[int, PreTrainedConfig] = {}
    queue = [module.config for module in model.modules() if isinstance(module, PreTrainedModel)]
    while queue:
        config = cast("PreTrainedConfig", queue.pop())
        if id(config) in found:
            continue
        found[id(config)] = config
        parts = (getattr(config, name, None) for name in config.sub_configs)
        queue += [part for part in parts if isinstance(part, PreTrainedConfig)]
    return list(found.values())
