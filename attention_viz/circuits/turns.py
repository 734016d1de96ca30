"""Record each module's inputs and outputs in a run, to find parts without names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import hooked
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Recorder
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import entering, rows


@dataclass(frozen=True, eq=False)
class ModuleEvent:
    """A module's input, output and number of earlier attention calls."""

    module: nn.Module
    entered: Tensor
    left: Tensor
    calls: int


@dataclass(frozen=True, eq=False)
class Turns:
    """Every module's turn in a copy's run, in order of ending."""

    events: Sequence[ModuleEvent]

    def giving(self, turn: tuple[int, ModuleEvent]) -> tuple[int, ModuleEvent] | None:
        """Return the turn that made a module's input, not one that passed it on."""
        place, event = turn
        before = enumerate(self.events[:place])
        return next(((at, one) for at, one in before if same(one.left, event.entered)), None)

    def taking(self, turn: tuple[int, ModuleEvent]) -> Iterator[nn.Module]:
        """Yield the modules that took another's output unchanged."""
        place, event = turn
        return (one.module for one in self.events[place + 1 :] if same(one.entered, event.left))

    def of(self, module: nn.Module | None, calls: int) -> tuple[int, ModuleEvent] | None:
        """Return a module's turn after some calls, and its index."""
        found = ((place, event) for place, event in enumerate(self.events) if event.calls == calls)
        return next(((place, event) for place, event in found if event.module is module), None)


def listened(run: ModelRun) -> Turns:
    """Record the modules of a copy; the model's other runs aren't affected."""
    twin: Twin = run.runner.twin(frozen=True)
    recorder, events = Recorder(keep=frozenset()), list[ModuleEvent]()

    def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        entered = entering(inputs, named)
        if entered is not None and isinstance(output, Tensor):
            own = twin.original[module]
            events.append(ModuleEvent(own, entered.detach().clone(), output.detach().clone(), recorder.count))

    # An adapter is a module with others inside, and makes queries, keys, values or words all the same.
    wirings, head = run.anatomy.wirings, run.runner.model.get_output_embeddings()
    around = {
        id(one.module) for wiring in wirings for one in (wiring.query, wiring.key, wiring.value) if one is not None
    }
    around |= {id(module) for module in (head, *(wiring.output for wiring in wirings))}
    heard = (
        module
        for module in twin.model.modules()
        if next(module.children(), None) is None or id(twin.original[module]) in around
    )
    with hooked(heard, hear), twin.recorded(recorder, run.name):
        output_of(twin.model(**run.inputs, **twin.settings))
    return Turns(events)


def same(one: Tensor, other: Tensor) -> bool:
    """Compare numbers to the last bit, in any row arrangement."""
    if one.numel() != other.numel() or one.dtype != other.dtype or not one.is_floating_point():
        return False
    count = other.shape[-2] if other.ndim > 1 else 1
    flat, expected = rows(one, count), rows(other, count)
    return flat is not None and expected is not None and torch.equal(flat, expected)
