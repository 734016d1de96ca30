"""Copies a model to run it without our attention, and leave the original alone."""

import contextlib
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.errors import AttentionVizError, UnsupportedModel, first_line
from attention_viz.recording.copied import copied
from attention_viz.recording.hooks import HOOKS, hooked
from attention_viz.recording.implementation import IMPLEMENTATION, Switch, configurations
from attention_viz.recording.interception.following import FollowedCall, Following, Soften
from attention_viz.recording.interception.plan import NO_PLAN, InterceptionPlan, parameters_of
from attention_viz.recording.interface import OURS
from attention_viz.recording.mixers.listening import edited_mixers
from attention_viz.recording.outputs.readout import ONLY_LAST, Readout, body_of, hidden_of
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Recorder, heard_by
from attention_viz.recording.sparse.hearing import in_sparse_turn
from attention_viz.recording.towers import mixer_labels
from attention_viz.sources.huggingface import PreTrainedModel

# How many numbers of an output are made at a time, where nobody needs it whole: 16 MiB in float32.
NUMBERS_AT_A_TIME = 2**22

# Hears each module of a model and what its twin returned.
Hear = Callable[[nn.Module, object], None]


@dataclass(frozen=True, eq=False)
class Twin:
    """Modules over a model's tensors, with their own configurations, in evaluation mode.

    Attributes:
        original: the model's module by the twin's.
        own: each configuration's attention implementation in the model, by id; None if unnamed.
        named: its forward's parameters.
    """

    model: PreTrainedModel
    original: Mapping[nn.Module, nn.Module]
    own: Mapping[int, str | None]
    named: frozenset[str]
    settings: Mapping[str, object]
    door: AbstractContextManager[object]
    plan: InterceptionPlan = NO_PLAN

    @classmethod
    def of(
        cls,
        model: PreTrainedModel,
        switch: Switch,
        named: frozenset[str],
        settings: Mapping[str, object],
        door: AbstractContextManager[object],
        *,
        frozen: bool = False,
    ) -> "Twin":
        """Copy a model; if `frozen`, with parameters without gradients over the same numbers."""
        memo: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        # Half of a copy's time would go into places for hooks in which there is nothing.
        memo |= {id(one): OrderedDict() for one in _within(model) if type(one) is OrderedDict and not one}
        if frozen:
            memo |= {id(one): nn.Parameter(one.detach(), requires_grad=False) for one in model.parameters()}
        try:
            with HOOKS:
                twin = copied(model, memo)
        except Exception as error:
            raise UnsupportedModel(
                f"can't copy {type(model).__name__} for comparison: {type(error).__name__}: {error}"
            ) from error
        for module in twin.modules():
            module.training = False
            # Backward hooks of others change no output, but they wrap it, and would be called for our slopes.
            vars(module).update(_backward_hooks=OrderedDict(), _backward_pre_hooks=OrderedDict())
        own = {id(memo[id(config)]): name for config, name in switch.found() if id(config) in memo}
        original = dict(zip(twin.modules(), model.modules(), strict=True))
        return cls(twin, original, own, named, settings, door, switch.plan)

    @property
    def is_eager(self) -> bool:
        """Whether the model is eager throughout, so that an eager run is its own."""
        return all(name == "eager" for name in self.own.values())

    def implementations(self, modules: Sequence[nn.Module]) -> tuple[str, ...]:
        """Return the modules' distinct attention implementations in the model."""
        wanted = set(modules)
        configs = [getattr(twin, "config", None) for twin, one in self.original.items() if one in wanted]
        known = [id(config if id(config) in self.own else self.model.config) for config in configs]
        return tuple(dict.fromkeys(self.own.get(one) or "no name" for one in known))

    def run(self, inputs: Mapping[str, Tensor], implementation: str | None = None, hear: Hear | None = None) -> Tensor:
        """Return a run's output, by default with the model's own attention."""
        with self.turned(implementation), self._heard(hear), self.door, torch.no_grad():
            return self.run_as_turned(inputs)

    def run_as_turned(self, inputs: Mapping[str, Any]) -> Tensor:
        """Return the output with the configurations' current attention."""
        return output_of(self.model(**inputs, **self.settings))

    def run_followed(
        self, inputs: Mapping[str, Tensor], attend: Callable[[FollowedCall], None], soften: Soften | None = None
    ) -> tuple[Tensor, int]:
        """Return an eager run's output and number of softmaxes; see `Following`."""
        inside = bool(self.plan.sites)
        following = Following(parameters_of(self.model), attend, busy=in_sparse_turn, softmax=soften, inside=inside)
        with self.turned("eager"), self.door, torch.no_grad(), following:
            output = output_of(self.model(**inputs, **self.settings))
        return output, following.softmaxes

    def run_in_pieces(
        self,
        inputs: Mapping[str, Tensor],
        rows: int,
        take: Callable[[slice, Tensor], None],
        implementation: str | None = None,
    ) -> None:
        """Run once and pass the output to `take` in pieces.

        A long text's logits are its largest tensor, so a head that makes each row alone runs piece by piece.
        """
        with self.turned(implementation), self.door, torch.no_grad():
            self.pieces(inputs, rows, take)

    def pieces(self, inputs: Mapping[str, Tensor], rows: int, take: Callable[[slice, Tensor], None]) -> None:
        """Pass a run's output to `take` in pieces; see `run_in_pieces`."""
        found = self._run_body(inputs, rows)
        if found is None:
            take(slice(0, rows), self.run_as_turned(inputs))
            return
        readout, hidden = found
        step = max(1, NUMBERS_AT_A_TIME // max(1, readout.row.shape[-1]))
        for some in (slice(start, min(start + step, rows)) for start in range(0, rows, step)):
            take(some, readout.rows(hidden[:, some]))

    def _run_body(self, inputs: Mapping[str, Tensor], rows: int) -> tuple[Readout, Tensor] | None:
        """Return the readout and the body's states; None if rows don't go by position."""
        body = body_of(self.model)
        if body is None or not ONLY_LAST.keys() <= self.named:
            return None
        outputs, thread = list[object](), threading.get_ident()

        def hear(_module: nn.Module, _inputs: object, _named: object, output: object) -> None:
            # The model itself may run in other threads meanwhile.
            if threading.get_ident() == thread:
                outputs.append(output)

        with hooked([body], hear):
            last = output_of(self.model(**inputs, **self.settings, **ONLY_LAST))
        hidden = hidden_of(outputs[0], rows) if len(outputs) == 1 else None
        if hidden is None or last.shape[0] != 1:
            return None
        readout = Readout.of(self.model, {**inputs, **self.settings}, hidden, last)
        return None if readout is None else (readout, hidden)

    @contextlib.contextmanager
    def recorded(
        self, recorder: Recorder, name: str, cannot: str = "can't be run", *, slopes: bool = False
    ) -> Generator[None]:
        """Record the twin's calls inside with our attention."""
        try:
            mixing = edited_mixers(mixer_labels(self.model) if recorder.edits else {}, recorder.edits, recorder.places)
            with heard_by(recorder), self.door, torch.set_grad_enabled(slopes), self.turned(OURS), mixing:
                yield
        except AttentionVizError:
            raise
        except Exception as error:
            raise UnsupportedModel(f"{name} {cannot}: {type(error).__name__}: {first_line(error)}") from error

    @contextlib.contextmanager
    def turned(self, implementation: str | None) -> Generator[None]:
        """Set all configurations' attention implementation; None for their own."""
        for config in configurations(self.model):
            keeps = implementation is None or self.plan.keeps_own
            own = self.own.get(id(config), "eager") if keeps else implementation
            setattr(config, IMPLEMENTATION, own)
        with self.plan.listening(self.model) if implementation == OURS else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _heard(self, hear: Hear | None) -> Generator[None]:
        if hear is None:
            yield
            return
        handles = [
            module.register_forward_hook(functools.partial(_tell, original, hear))
            for module, original in self.original.items()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _within(model: nn.Module) -> Iterator[object]:
    for module in model.modules():
        yield from vars(module).values()


def _tell(module: nn.Module, hear: Hear, _twin: nn.Module, _inputs: object, outputs: object) -> None:
    hear(module, outputs)
