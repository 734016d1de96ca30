"""One pass through a model: recorded with our attention, or plain with its own."""

import contextlib
import inspect
import platform
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.edits.edit import Edit
from attention_viz.inputs.device import device_of
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.operation.terms import same_terms
from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.implementation import Switch
from attention_viz.recording.outputs.readout import ONLY_LAST, Readout, body_of, hidden_of
from attention_viz.recording.outputs.returned import Returned, named_output_of, output_of
from attention_viz.recording.recorder import Call, Recorder, heard_by, recording
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import Listener, Wiring, hooked
from attention_viz.sources.huggingface import PreTrainedModel
from attention_viz.trace.memory import LateOutput, RestingFile

# On so many tokens it is tried whether the output follows row by row from what the body hands over.
_FEW = 4


@dataclass(frozen=True, eq=False)
class Pass:
    """What a recorded pass gave.

    Attributes:
        output: the model's, without its batch axis; of a long text made when it is looked at.
        calls: the attention calls that were kept, in order.
        modules: which module made each call, of those that weren't kept, too.
        numbers: of each kept call, its place among all.
        named: what the output is called among the things that the model returns; empty where nobody asked.
        seconds: what the run took; 0 where nobody measured it.
    """

    output: Tensor | LateOutput
    calls: tuple[Call, ...]
    modules: tuple[nn.Module, ...]
    numbers: tuple[int, ...]
    named: str = ""
    seconds: float = 0.0

    @classmethod
    def of(cls, returned: Returned, recorder: Recorder) -> "Pass":
        """What a recorder heard of a run, and the run's output."""
        return cls(returned.tensor, recorder.calls(), recorder.modules, recorder.numbers, returned.name)


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs one model, from any number of threads at once.

    Attributes:
        named: what its forward takes, by name.
        door: entered for every forward: behind it a model runs as it was written; a server's lets so many in at once.
    """

    model: PreTrainedModel
    switch: Switch
    named: frozenset[str]
    door: AbstractContextManager[object] = field(default_factory=AsWritten)
    # Whether the output can be made row by row, once that was tried.
    _tried: list[bool] = field(default_factory=list[bool])

    @classmethod
    def of(cls, model: PreTrainedModel) -> "Runner":
        """Find out how a model has to be run; a wrapper of adapters hands on what it doesn't name itself."""
        inside = next((one for one in model.modules() if isinstance(one, PreTrainedModel)), model)
        named = {name for one in (model, inside) for name in inspect.signature(one.forward).parameters}
        return cls(model, Switch.of(model), frozenset(named))

    @property
    def answers(self) -> bool:
        """Whether the model reads a text and says another, as an encoder–decoder does."""
        return "decoder_input_ids" in self.named

    @property
    def settings(self) -> dict[str, bool]:
        """What each run is given beside its inputs: no cache, which a pass over the whole text has no use for."""
        return {"use_cache": False} if "use_cache" in self.named else {}

    def inputs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """On the model's device, those tensors that the model's forward names; tokenizers make some that it doesn't."""
        device, all_of_them = device_of(self.model), "input_ids" not in self.named
        return {name: tensor.to(device) for name, tensor in tensors.items() if all_of_them or name in self.named}

    def record(
        self,
        inputs: Mapping[str, Tensor],
        edits: Sequence[Edit] = (),
        places: Sequence[tuple[str, int]] = (),
        keep: Collection[int] | None = None,
        rest: RestingFile | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Pass:
        """Run with our attention, in the model itself.

        Args:
            places: of each call, its stream and its place there; needed for edits only.
            keep: the places among all calls of those that are kept; all by default.
            rest: where what is kept is written, that of a long text; None for memory.
        """
        started = time.perf_counter()
        recorder = Recorder(edits, places, keep, rest, progress)
        recorded = None if rest is None else self._record_body(recorder, inputs)
        if recorded is None:
            recorder = Recorder(edits, places, keep, rest, progress)
            recorded = Pass.of(self._run(recorder, inputs), recorder)
        recorded = replace(recorded, seconds=time.perf_counter() - started)
        if rest is None or isinstance(recorded.output, LateOutput):
            return recorded
        return replace(recorded, output=rest.put(recorded.output))

    def _record_body(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Pass | None:
        """A run that makes the last row of its output alone, and the others when they are looked at.

        None where a model can't be run so: its output doesn't follow from what its body hands over, row by row.
        """
        if not self._reads_out(inputs):
            return None
        found = self._run_body(recorder, inputs, ONLY_LAST)
        if found is None:
            return None
        (name, last), hidden = found
        readout = Readout.of(self.model, {**inputs, **self.settings}, hidden, last)
        if readout is None:
            return None
        rest = recorder.rest
        late = readout.late(hidden if rest is None else rest.put(hidden), rest)
        return Pass(late, recorder.calls(), recorder.modules, recorder.numbers, name)

    def _reads_out(self, inputs: Mapping[str, Tensor]) -> bool:
        """Whether each row of the output follows from what the body hands over for it; tried once, on a few tokens."""
        if self.answers or not ONLY_LAST.keys() <= self.named or not _goes_by_position(inputs):
            return False
        if not self._tried:
            few = {name: tensor[:, :_FEW] for name, tensor in inputs.items()}
            found = self._run_body(Recorder(), few, {})
            self._tried.append(found is not None and self._is_read_out(few, found[0].tensor, found[1]))
        return self._tried[0]

    def _is_read_out(self, inputs: Mapping[str, Tensor], output: Tensor, hidden: Tensor) -> bool:
        readout = Readout.of(self.model, {**inputs, **self.settings}, hidden)
        if readout is None or len(output) != hidden.shape[1]:
            return False
        alone = torch.cat([readout.rows(hidden[:, at : at + 1]) for at in range(len(output))])
        return close(alone, output, REORDERED)

    def _run_body(
        self, recorder: Recorder, inputs: Mapping[str, Tensor], settings: Mapping[str, object]
    ) -> tuple[Returned, Tensor] | None:
        """A recorded run's output, and what the body handed over; None where that isn't of the text's positions."""
        body, outputs = body_of(self.model), list[object]()
        if body is None:
            return None

        def hear(_module: nn.Module, _inputs: object, _named: object, output: object) -> None:
            if recording.get() is recorder:
                outputs.append(output)

        with hooked([body], hear):
            returned = self._run(recorder, {**inputs, **settings})
        hidden = hidden_of(outputs[0], inputs["input_ids"].shape[1]) if len(outputs) == 1 else None
        return None if hidden is None else (returned, hidden)

    def record_next(self, token: int, position: int, before: int, cache: object) -> Pass:
        """Run one token with our attention, beside the keys and values that a cache holds of those before it.

        Args:
            cache: transformers' own; it holds the token's keys and values afterwards.
        """
        recorder = Recorder()
        inputs = self.step_inputs(token, position, before, cache)
        return Pass.of(self._run(recorder, inputs | {"use_cache": True}), recorder)

    def step_inputs(self, token: int, position: int, before: int, cache: object) -> dict[str, Any]:
        """What the model is given in a step; see `record_next`."""
        device = device_of(self.model)
        inputs = {
            "input_ids": torch.tensor([[token]], device=device),
            "attention_mask": torch.ones(1, before + 1, dtype=torch.long, device=device),
            "position_ids": torch.tensor([[position]], device=device),
            # One of the two: transformers calls it by the latter name from 5.24 on.
            "past_key_values": cache,
            "cache": cache,
        }
        return {name: value for name, value in inputs.items() if name in self.named}

    def record_around(
        self,
        inputs: Mapping[str, Tensor],
        edits: Sequence[Edit],
        places: Sequence[tuple[str, int]],
        wirings: Sequence[Wiring],
        keep: Collection[int] | None = None,
    ) -> tuple[Pass, Listener]:
        """A recorded run that also listens to what stands around the calls, which costs some more."""
        recorder = Recorder(edits, places, keep)
        around = Listener(recorder, wirings)
        with around.listening():
            returned = self._run(recorder, inputs)
        return Pass.of(returned, recorder), around

    def _run(self, recorder: Recorder, inputs: Mapping[str, object]) -> Returned:
        with self.hearing(recorder):
            return named_output_of(self.model(**(self.settings | dict(inputs))))

    @contextlib.contextmanager
    def hearing(self, recorder: Recorder, *, slopes: bool = False) -> Generator[None]:
        """Have the model attend by our function, with a recorder that hears it, and keep gradients only if asked."""
        with heard_by(recorder), self.door, torch.inference_mode(False) if slopes else contextlib.nullcontext():
            with torch.set_grad_enabled(slopes), self.switch.ours():
                yield

    def run_open(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Run with a recorder of the caller's, and let gradients be asked for afterwards."""
        with self.hearing(recorder, slopes=True):
            return output_of(self.model(**inputs, **self.settings))

    def run_own(self, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """The model's output as it is, not a twin's.

        None if it can't be run so: another thread turns it to our attention meanwhile, or it fails, as its twin will.
        """
        _ = self.switch.found()
        with contextlib.suppress(Exception), self.door, torch.no_grad(), self.switch.own() as turned:
            output = output_of(self.model(**inputs, **self.settings))
            return None if turned() else output
        return None

    def twin(self, *, frozen: bool = False) -> Twin:
        """A twin of the model, to be run without our attention."""
        return Twin.of(self.model, self.switch, self.named, self.settings, self.door, frozen=frozen)


def versions(device: torch.device) -> dict[str, str]:
    """What computes here, by name: packages, Python, and the kind of device."""
    packages = {name: version(name) for name in ("torch", "transformers")}
    # Ours is read from the package in use, which may run from its source without being installed.
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    return {"attention_viz": own, **packages, "python": platform.python_version(), "device": device.type}


def _goes_by_position(inputs: Mapping[str, Tensor]) -> bool:
    """Whether a part of a text can be run by cutting the inputs."""
    ids = inputs.get("input_ids")
    return ids is not None and all(tensor.shape == (1, ids.shape[-1]) for tensor in inputs.values())


def alike(one: Attention, other: Attention) -> bool:
    """Whether two calls had the same inputs, up to the order in which threads add."""
    return same_terms(one, other, _close)


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    one, other = one.double(), other.double()
    # Beside the largest number, what is near 0 may be off by much of itself.
    size = float(other[other.isfinite()].abs().max()) if other.isfinite().any() else 1.0
    return torch.allclose(one, other, rtol=1e-3, atol=3e-5 * max(size, 1 / 3))
