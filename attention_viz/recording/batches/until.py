"""The start of a run, as far as one attention call."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.recorder import Call, Recorder, RunEnded
from attention_viz.recording.runner import Runner

__all__ = ["UNCHANGED", "Intervention", "call_of"]


@dataclass(frozen=True, eq=False)
class Intervention:
    """What is changed inside a model while it runs.

    Attributes:
        places: of each call, its stream and its place there.
    """

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()


UNCHANGED = Intervention()


def call_of(runner: Runner, inputs: Mapping[str, Tensor], number: int, changed: Intervention = UNCHANGED) -> Call:
    """The call of one number, head first, of a run that goes no further."""
    recorder = Recorder(changed.edits, changed.places, (number,), last=number)
    with contextlib.suppress(RunEnded):
        _ = runner.run_open(recorder, inputs)
    if not (calls := recorder.calls()):
        raise UnsupportedModel(f"{type(runner.model).__name__} made no attention call {number} for this input")
    return calls[0]
