"""The turn of each layer in a run: what a layer was given and what left it, so that it can run again or be left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from attention_viz.models.recording.gradients import ModelRun
from attention_viz.models.recording.outputs.returned import output_of
from attention_viz.models.recording.recorder import Recorder
from attention_viz.models.recording.twin import Twin
from attention_viz.models.recording.wiring import entering, hooked

__all__ = ["LayerTurn", "layer_turns", "repeated"]


@dataclass(frozen=True, eq=False)
class LayerTurn:
    """One layer's turn in a run.

    Attributes:
        named: what it was given by name.
        output: what it gave, of which the first is what left it.
        left: (1, position, d_model), what left it.
        first: the first of its attention calls, among all.
    """

    module: nn.Module
    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    output: object
    left: Tensor
    first: int

    def again(self, rows: int) -> Tensor:
        """What leaves it of a batch with the same text in every row: (row, position, d_model)."""
        found = self.module(
            *(repeated(one, rows) for one in self.inputs),
            **{name: repeated(one, rows) for name, one in self.named.items()},
        )
        return found[0] if isinstance(found, tuple) else found


def layer_turns(run: ModelRun, twin: Twin, stream: str) -> dict[int, LayerTurn]:
    """By call of a stream, the turn of the layer around it: of the largest module that has no other call of it.

    Args:
        run: what ran, with its edits; it runs once more.
    """
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
    """What belongs to a text, once for each row of a batch; a tensor that has no batch axis stays as it is.

    Args:
        start: the first position that is wanted of what a module gave, (1, position, width); 0 leaves all as it is.
    """
    if isinstance(one, Tensor):
        one = one[:, start:] if start and one.ndim == 3 else one
        return one.repeat(rows, *[1] * (one.ndim - 1)) if one.ndim > 1 and one.shape[0] == 1 else one
    if isinstance(one, tuple) and type(one) is tuple:
        return tuple(repeated(part, rows, start) for part in one)
    return one
