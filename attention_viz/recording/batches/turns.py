"""Each layer's input and output in a run, to repeat it or leave it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import hooked
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Recorder
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import entering


@dataclass(frozen=True, eq=False)
class LayerTurn:
    """One layer's turn in a run.

    Attributes:
        left: its (first) output, (1, position, d_model).
        first: its first attention call's number.
    """

    module: nn.Module
    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    output: object
    left: Tensor
    first: int

    def again(self, rows: int) -> Tensor:
        """Run it on copies of a text: (row, position, d_model)."""
        found = self.module(
            *(repeated(one, rows) for one in self.inputs),
            **{name: repeated(one, rows) for name, one in self.named.items()},
        )
        return found[0] if isinstance(found, tuple) else found


def layer_turns(run: ModelRun, twin: Twin, stream: str) -> dict[int, LayerTurn]:
    """Rerun with edits; return each call's layer: the largest module without another call of the stream."""
    found: dict[int, LayerTurn] = {}
    recorder = Recorder(run.edits, run.anatomy.places, frozenset())
    # Modules end before those that they stand in.
    began: list[int] = []

    def enter(_module: nn.Module, _inputs: object) -> None:
        began.append(recorder.count)

    def leave(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: object) -> None:
        first = began.pop()
        entered, left = entering(inputs, named), output[0] if isinstance(output, tuple) and output else output
        own = [one for one in range(first, recorder.count) if run.anatomy.streams[one] == stream]
        whole = isinstance(left, Tensor) and entered is not None and left.ndim == 3 and left.shape == entered.shape
        if len(own) == 1 and isinstance(left, Tensor) and whole:
            found[own[0]] = LayerTurn(module, inputs, named, output, left, first)

    with hooked(twin.model.modules(), leave, enter), twin.recorded(recorder, run.name):
        output_of(twin.model(**run.inputs, **twin.settings))
    return found


def repeated(one: Any, rows: int, start: int = 0) -> Any:
    """Repeat tensors per batch row; `start` cuts outputs, (1, position, width)."""
    if isinstance(one, Tensor):
        one = one[:, start:] if start and one.ndim == 3 else one
        return one.repeat(rows, *[1] * (one.ndim - 1)) if one.ndim > 1 and one.shape[0] == 1 else one
    if isinstance(one, tuple) and type(one) is tuple:
        return tuple(repeated(part, rows, start) for part in one)
    return one
