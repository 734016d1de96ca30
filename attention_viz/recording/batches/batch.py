"""Runs several rows in one pass, each a run of its own with changed calls."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.recorder import Call, Recorder, RunEnded, whole_output
from attention_viz.recording.runner import Runner


@dataclass(eq=False)
class Batch(Recorder):
    """Recorder of a batch, which keeps nothing.

    Attributes:
        first: the first call's number, if earlier layers don't run.
        compute_rows: returns a call's output, (row, head, query, d_v).
    """

    rows: int = 1
    first: int = 0
    compute_rows: "Callable[[int, Call], Tensor]" = lambda _number, call: whole_output(call.attention)
    _heard: int = 0

    @property
    def heard(self) -> int:
        """How many calls were heard."""
        return self._heard

    def hear(self, call: Call) -> Tensor:
        """Return a call's output in every row, (row, head, query, d_v)."""
        query = call.attention.query
        again = self._last is not None and self._last.again(call)
        if query.ndim == 4 and len(query) > self.rows and len(query) % self.rows == 0:
            raise UnsupportedModel(
                f"{type(call.module).__name__} attends in {len(query) // self.rows} tiles or images, each a "
                "row of its own, so a batch can't hold several runs; use one image that isn't cut up, or av.effects"
            )
        if again or query.ndim != 4 or len(query) != self.rows or self.first + self._heard >= len(self.places):
            raise UnsupportedModel(
                f"{type(call.module).__name__} computes a batch differently from its rows one by one"
            )
        self._last = call
        self._heard += 1
        return self.compute_rows(self.first + self._heard - 1, call)


@dataclass(frozen=True, eq=False)
class Intervention:
    """Edits of a run; `places` has each call's stream and layer number."""

    edits: Sequence[Edit] = ()
    places: Sequence[tuple[str, int]] = ()


UNCHANGED = Intervention()


def call_of(runner: Runner, inputs: Mapping[str, Tensor], number: int, changed: Intervention = UNCHANGED) -> Call:
    """Return one call, head first, and end the run there."""
    recorder = Recorder(changed.edits, changed.places, (number,), last=number)
    with contextlib.suppress(RunEnded):
        _ = runner.run_open(recorder, inputs)
    if not (calls := recorder.calls()):
        raise UnsupportedModel(f"{type(runner.model).__name__} made no attention call {number} for this input")
    return calls[0]
