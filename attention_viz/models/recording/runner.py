"""One pass through a model: recorded with our attention, or plain with its own."""

import copy
import functools
import inspect
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.models.huggingface import PreTrainedModel
from attention_viz.models.recording.implementation import IMPLEMENTATION, Switch, configurations
from attention_viz.models.recording.recorder import Call, Recorder, recording
from attention_viz.models.recording.wiring import HOOKS, Listener, Wiring
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import same_terms

__all__ = ["Pass", "Runner", "alike", "versions"]


@dataclass(frozen=True, eq=False)
class Pass:
    """What a recorded pass gave.

    Attributes:
        output: the model's, without its batch axis.
        calls: every attention call in order.
    """

    output: Tensor
    calls: tuple[Call, ...]


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs one model, from any number of threads at once.

    Attributes:
        model: the model.
        switch: turns it to our attention.
        named: what its forward takes, by name.
        door: entered for every forward; a server's lets so many in at once.
    """

    model: PreTrainedModel
    switch: Switch
    named: frozenset[str]
    door: AbstractContextManager[object] = field(default_factory=nullcontext[None])

    @classmethod
    def of(cls, model: PreTrainedModel) -> "Runner":
        """Find out how a model has to be run."""
        return cls(model, Switch.of(model), frozenset(inspect.signature(model.forward).parameters))

    @property
    def answers(self) -> bool:
        """Whether the model reads a text and says another, as an encoder–decoder does."""
        return "decoder_input_ids" in self.named

    @property
    def _settings(self) -> dict[str, bool]:
        """Without a cache of keys and values, which a pass over the whole text has no use for."""
        return {"use_cache": False} if "use_cache" in self.named else {}

    def inputs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """On the model's device, those tensors that the model's forward names; tokenizers make some that it doesn't."""
        device, all_of_them = self.model.device, "input_ids" not in self.named
        return {name: tensor.to(device) for name, tensor in tensors.items() if all_of_them or name in self.named}

    def record(
        self, inputs: Mapping[str, Tensor], edits: Sequence[Edit] = (), places: Sequence[tuple[str, int]] = ()
    ) -> Pass:
        """Run with our attention, in the model itself; edits need to know the place of each call."""
        recorder = Recorder(edits, places)
        return Pass(self._run(recorder, inputs), recorder.calls())

    def record_around(
        self,
        inputs: Mapping[str, Tensor],
        edits: Sequence[Edit],
        places: Sequence[tuple[str, int]],
        wirings: Sequence[Wiring],
    ) -> tuple[Pass, Listener]:
        """A recorded run that also listens to what stands around the calls, which costs some more."""
        recorder = Recorder(edits, places)
        around = Listener(recorder, wirings)
        with around.listening():
            output = self._run(recorder, inputs)
        return Pass(output, recorder.calls()), around

    def _run(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Tensor:
        token = recording.set(recorder)
        try:
            with self.door, torch.no_grad(), self.switch.ours():
                return _output(self.model(**inputs, **self._settings))
        finally:
            recording.reset(token)

    def run_open(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Run with a recorder of the caller's, and let gradients be asked for afterwards."""
        token = recording.set(recorder)
        try:
            with self.door, torch.inference_mode(False), torch.enable_grad(), self.switch.ours():
                return _output(self.model(**inputs, **self._settings))
        finally:
            recording.reset(token)

    def plain(self, inputs: Mapping[str, Tensor], hear: Callable[[nn.Module, object], None]) -> Tensor:
        """Run with transformers' eager attention, in a twin of the model, and hand back the output.

        The model itself is not touched, so whoever uses it at the same time notices nothing.

        Args:
            inputs: what to run.
            hear: called with each module of the model and what its twin returned, each time it returned.

        Raises:
            UnsupportedModel: the model can't be copied.
        """
        twin = _twin(self.model)
        for module, copied in zip(self.model.modules(), twin.modules(), strict=True):
            copied.register_forward_hook(functools.partial(_tell, module, hear))
        with self.door, torch.no_grad():
            return _output(twin(**inputs, **self._settings))


def _tell(
    module: nn.Module, hear: Callable[[nn.Module, object], None], _twin: nn.Module, _inputs: object, outputs: object
) -> None:
    hear(module, outputs)


def _twin(model: PreTrainedModel) -> PreTrainedModel:
    """A twin of the model: modules over the same tensors, with configurations of their own, eager, not training."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    try:
        with HOOKS:
            twin = copy.deepcopy(model, shared)
    except Exception as error:
        raise UnsupportedModel(
            f"{type(model).__name__} can't be copied to be compared with: {type(error).__name__}: {error}"
        ) from error
    for config in configurations(twin):
        setattr(config, IMPLEMENTATION, "eager")
    for module in twin.modules():
        module.training = False
    return twin


def _output(result: Any) -> Tensor:
    """Logits where the model has a head, else the last hidden state; (position, width), without the batch axis.

    A head that says one thing of the whole text gives one row.
    """
    found = {name: getattr(result, name, None) for name in ("start_logits", "end_logits")}
    if all(isinstance(tensor, Tensor) for tensor in found.values()):
        return torch.stack([tensor[0] for tensor in found.values() if tensor is not None], dim=-1)
    first = result[0] if isinstance(result, tuple) else None
    for tensor in (*(getattr(result, name, None) for name in _OUTPUTS), first):
        if isinstance(tensor, Tensor):
            return tensor[0] if tensor.ndim > 2 else tensor
    raise UnsupportedModel(f"the model returns {type(result).__name__}, with neither logits nor a last hidden state")


_OUTPUTS = ("logits", "prediction_logits", "last_hidden_state")


def versions(device: torch.device) -> dict[str, str]:
    """What computes here, by name: packages, Python, and the kind of device."""
    packages = {name: version(name) for name in ("torch", "transformers")}
    # Ours is read from the package in use, which may run from its source without being installed.
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    return {"attention_viz": own, **packages, "python": platform.python_version(), "device": device.type}


def alike(one: Attention, other: Attention) -> bool:
    """Whether two calls had the same inputs, up to the order in which threads add."""
    return same_terms(one, other, _close)


def _close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), rtol=1e-3, atol=1e-5)
