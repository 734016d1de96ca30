"""Runs one pass of a model: recorded with our attention, or plain with its own."""

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
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.inputs.module_tree import ModuleTree
from attention_viz.operation.attention import Attention
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.operation.terms import same_terms
from attention_viz.recording.as_written import AsWritten
from attention_viz.recording.call_chunks import CallPart, chunks_of
from attention_viz.recording.hooks import hooked
from attention_viz.recording.implementation import Switch
from attention_viz.recording.mixers.listening import edited_mixers, heard_mixers
from attention_viz.recording.mixers.record import MixerCall, MixerRecorder
from attention_viz.recording.mixers.wkv import hear_channels
from attention_viz.recording.outputs.readout import ONLY_LAST, Readout, body_of, hidden_of
from attention_viz.recording.outputs.returned import Returned, named_output_of, output_of
from attention_viz.recording.recorder import Call, Recorder, TurnsNeeded, heard_by, recording
from attention_viz.recording.sparse.picking import PickingListener
from attention_viz.recording.towers import mixer_labels
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import Listener, Wiring
from attention_viz.sources.huggingface import PreTrainedModel
from attention_viz.trace.kept import KeptCells
from attention_viz.trace.memory import LateOutput, RestingFile
from attention_viz.trace.picking import Picking

# On so many tokens it is tried whether the output follows row by row from what the body hands over.
_FEW = 4


@dataclass(frozen=True, eq=False)
class Pass:
    """A recorded pass.

    Attributes:
        output: without batch axis; a long text's is computed when read.
        numbers: the kept calls' numbers.
        named: the output's name in the model's result.
        seconds: 0 if not measured.
        mixers: the kept calls of layers without a softmax.
        mixing: all of those calls' modules.
        chunks: each call's chunks by length; empty for a call of one.
        rows: each call's rows of a batch; 1 for a call of one.
        parted: modules that attended several times in one turn, but not over chunks.
        picks: the keys that indexers picked for calls, by number.
    """

    output: Tensor | LateOutput
    calls: tuple[Call, ...]
    modules: tuple[nn.Module, ...]
    numbers: tuple[int, ...]
    named: str = ""
    seconds: float = 0.0
    mixers: tuple[MixerCall, ...] = ()
    mixing: tuple[nn.Module, ...] = ()
    chunks: tuple[tuple[int, ...], ...] = ()
    rows: tuple[int, ...] = ()
    parted: tuple[nn.Module, ...] = ()
    picks: Mapping[int, Picking] = field(default_factory=dict[int, Picking])

    @property
    def parts(self) -> list[CallPart]:
        """All calls' chunks, in the model's order."""
        count = len(self.modules)
        return chunks_of(self.chunks or [()] * count, self.rows or [1] * count)

    @property
    def in_parts(self) -> bool:
        """Whether the model computes some calls in parts."""
        return any(self.chunks) or any(count > 1 for count in self.rows)

    @classmethod
    def of(cls, returned: Returned, recorder: Recorder) -> "Pass":
        """Combine a recorder's calls and an output."""
        found = cls(returned.tensor, recorder.calls(), recorder.modules, recorder.numbers, returned.name)
        return replace(found, chunks=recorder.chunks, rows=recorder.joined_rows, parted=tuple(recorder.parted))


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs one model, from any number of threads.

    Attributes:
        named: its forward's parameters.
        tree: its modules.
        door: entered for every forward; a server's limits concurrent runs.
        mixing: the modules that mix tokens without a softmax, with their layers' numbers as text.
    """

    model: PreTrainedModel
    switch: Switch
    named: frozenset[str]
    tree: ModuleTree
    door: AbstractContextManager[object] = field(default_factory=AsWritten)
    mixing: Mapping[nn.Module, str] = field(default_factory=dict[nn.Module, str])
    # The modules that attended so far, whose turns are heard to end.
    _attending: dict[nn.Module, None] = field(default_factory=dict[nn.Module, None])
    # True once a module attended twice in a run, so that turns have to be counted.
    _again: list[bool] = field(default_factory=list[bool])
    # Whether the output can be made row by row, once that was tried.
    _tried: list[bool] = field(default_factory=list[bool])

    @classmethod
    def of(cls, model: PreTrainedModel) -> "Runner":
        """Inspect a model; a wrapper of adapters passes on parameters it doesn't name."""
        inside = next((one for one in model.modules() if isinstance(one, PreTrainedModel)), model)
        named = {name for one in (model, inside) for name in inspect.signature(one.forward).parameters}
        hear_channels(model)
        return cls(model, Switch.of(model), frozenset(named), ModuleTree(model), mixing=mixer_labels(model))

    @property
    def answers(self) -> bool:
        """Whether the model is an encoder–decoder."""
        return "decoder_input_ids" in self.named and not _reads_alone(self.model.config)

    @property
    def settings(self) -> dict[str, bool]:
        """Arguments of each run: no KV cache."""
        return {"use_cache": False} if "use_cache" in self.named else {}

    def inputs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Move the tensors that the forward names to the model's device."""
        device, all_of_them = device_of(self.model), "input_ids" not in self.named
        names = [name for name in tensors if all_of_them or name in self.named]
        names = names if self.answers else [name for name in names if not name.startswith("decoder_")]
        return {name: tensors[name].to(device) for name in names}

    def record(
        self,
        inputs: Mapping[str, Tensor],
        edits: Sequence[Edit] = (),
        places: Sequence[tuple[str, int]] = (),
        keep: Collection[int] | None = None,
        rest: RestingFile | None = None,
        progress: Callable[[int], object] | None = None,
        *,
        proves: bool = False,
        cells: KeptCells | None = None,
    ) -> Pass:
        """Run with our attention, in the model itself.

        Args:
            keep: the calls to keep, those of layers without a softmax counted after all others; None for all.
            rest: file for a long text's record; None for memory.
            proves: whether kernels of layers without a softmax also show their own matrices, by a run per token.
            cells: the heads and rows to keep of each call; None for all.
        """
        started = time.perf_counter()
        try:
            once = not edits and not self._again
            recorded = self._record(inputs, edits, places, keep, rest, progress, proves, cells, once)
        except TurnsNeeded:
            self._again.append(True)
            recorded = self._record(inputs, edits, places, keep, rest, progress, proves, cells, once=False)
        recorded = replace(recorded, seconds=time.perf_counter() - started)
        if rest is None or isinstance(recorded.output, LateOutput):
            return recorded
        return replace(recorded, output=rest.put(recorded.output))

    def _record(
        self,
        inputs: Mapping[str, Tensor],
        edits: Sequence[Edit],
        places: Sequence[tuple[str, int]],
        keep: Collection[int] | None,
        rest: RestingFile | None,
        progress: Callable[[int], object] | None,
        proves: bool,
        cells: KeptCells | None,
        once: bool,
    ) -> Pass:
        """Run as `record` does; `once` if every module is expected to attend once."""

        def begin() -> tuple[Recorder, MixerRecorder]:
            recorder = Recorder(edits, places, keep, rest, progress, counts_turns=not once, cells=cells)
            return recorder, self._mixers(edits, places, keep, proves, rest)

        recorder, mixed = begin()
        # What this tries with a few tokens isn't to be heard.
        late = rest is not None and self._reads_out(inputs)
        picking = PickingListener.of({} if edits or cells is not None else inputs)
        with heard_mixers(self.mixing, mixed), picking.listening(self.tree.modules, recorder):
            recorded = self._record_body(recorder, inputs) if late else None
        if recorded is None:
            recorder, mixed = begin()
            with heard_mixers(self.mixing, mixed), picking.listening(self.tree.modules, recorder):
                recorded = Pass.of(self._run(recorder, inputs), recorder)
        recorded = replace(recorded, picks=picking.picks(dict(zip(recorded.numbers, recorded.calls, strict=True))))
        if rest is not None:
            rest.settle()
        return replace(recorded, mixers=tuple(mixed.calls), mixing=tuple(mixed.heard))

    def _mixers(
        self,
        edits: Sequence[Edit],
        places: Sequence[tuple[str, int]],
        keep: Collection[int] | None,
        proves: bool,
        rest: RestingFile | None,
    ) -> MixerRecorder:
        keep = None if keep is None else frozenset(one - len(places) for one in keep)
        attending = frozenset(number for _, number in places)
        return MixerRecorder(self.mixing, edits, attending, proves, keep=keep, rest=rest)

    def _record_body(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Pass | None:
        """Record with output rows computed on demand; None if the model can't."""
        found = self._run_body(recorder, inputs, ONLY_LAST)
        if found is None:
            return None
        (name, last), hidden = found
        readout = Readout.of(self.model, {**inputs, **self.settings}, hidden, last)
        if readout is None:
            return None
        rest = recorder.rest
        late = readout.late(hidden if rest is None else rest.put(hidden), rest)
        calls = recorder.calls()
        return Pass(late, calls, recorder.modules, recorder.numbers, name, chunks=recorder.chunks)

    def _reads_out(self, inputs: Mapping[str, Tensor]) -> bool:
        """Return whether output rows follow from the body's states; tried once."""
        if self.answers or not ONLY_LAST.keys() <= self.named or not _goes_by_position(inputs):
            return False
        if not self._tried:
            few, found = {name: tensor[:, :_FEW] for name, tensor in inputs.items()}, None
            with contextlib.suppress(UnsupportedModel):  # a model that reads no text so short
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
        """Return a run's output and the body's states; None if they aren't one per position."""
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
        """Run one token with our attention on a KV cache, which then holds it too."""
        recorder = Recorder(counts_turns=bool(self._again))
        inputs = self.step_inputs(token, position, before, cache)
        try:
            return Pass.of(self._run(recorder, inputs | {"use_cache": True}), recorder)
        except TurnsNeeded:
            family = type(self.model).__name__
            raise UnsupportedModel(f"{family} attends more often in a step than in the text before it") from None

    def step_inputs(self, token: int, position: int, before: int, cache: object) -> dict[str, Any]:
        """Return a step's inputs; see `record_next`."""
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
        """Record a run and its calls' surroundings."""
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
        """Run with our attention and a recorder; keep gradients only if `slopes`."""
        heard = heard_by(recorder, tuple(self._attending))
        with heard, self.door, torch.inference_mode(False) if slopes else contextlib.nullcontext():
            mixing = edited_mixers(self.mixing, recorder.edits, recorder.places)
            with torch.set_grad_enabled(slopes), self.switch.ours(), mixing:
                try:
                    yield
                finally:
                    self._attending.update(dict.fromkeys(recorder.modules))

    def run_open(self, recorder: Recorder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Run with a recorder and gradients."""
        with self.hearing(recorder, slopes=True):
            return output_of(self.model(**inputs, **self.settings))

    def run_own(self, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """Return the model's own output; None if it fails, or another thread switches it."""
        _ = self.switch.found()
        with contextlib.suppress(Exception), self.door, torch.no_grad(), self.switch.own() as turned:
            output = output_of(self.model(**inputs, **self.settings))
            return None if turned() else output
        return None

    def twin(self, *, frozen: bool = False) -> Twin:
        """Return a twin to run without our attention."""
        return Twin.of(self.model, self.switch, self.named, self.settings, self.door, frozen=frozen)


def _reads_alone(config: Any) -> bool:
    """Return whether a model that may have an encoder–decoder has a decoder alone."""
    return getattr(config, "use_decoder_only_language_model", False) is True


def versions(device: torch.device) -> dict[str, str]:
    """Return versions of packages and Python, and the device type."""
    packages = {name: version(name) for name in ("torch", "transformers")}
    # Ours is read from the package in use, which may run from its source without being installed.
    own = str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
    return {"attention_viz": own, **packages, "python": platform.python_version(), "device": device.type}


def _goes_by_position(inputs: Mapping[str, Tensor]) -> bool:
    """Return whether cutting the inputs runs a part of the text."""
    ids = inputs.get("input_ids")
    return ids is not None and all(tensor.shape == (1, ids.shape[-1]) for tensor in inputs.values())


def alike(one: Attention, other: Attention) -> bool:
    """Return whether calls had equal inputs, up to threads' order of adding."""
    return same_terms(one, other, _close)


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    one, other = one.double(), other.to(one.device).double()
    # Beside the largest number, what is near 0 may be off by much of itself.
    size = float(other[other.isfinite()].abs().max()) if other.isfinite().any() else 1.0
    return torch.allclose(one, other, rtol=1e-3, atol=3e-5 * max(size, 1 / 3))
