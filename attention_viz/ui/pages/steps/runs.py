"""The Step by step page's run, its learned matrices and variants."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from attention_viz.operation.modules import Projection
from attention_viz.serving.own import run_own
from attention_viz.serving.request import OwnModule
from attention_viz.serving.runs import Run, projections
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State

__all__ = ["OpenRun", "open_run"]


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A trace, with its known learned matrices and embedding summands."""

    trace: Trace
    projections: Mapping[str, Projection] = field(default_factory=dict[str, "Projection"])
    parts: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])

    def head(self, state: State, scale: str = "model", precision: str | None = None) -> OpenHead:
        """Return the head, switched or as run; the nearest if the variant lacks it."""
        stream = self.trace.streams[0]
        head = min(state.head, self.trace.head_count(state.layer, stream) - 1)
        return open_head(
            self.trace,
            state.layer,
            head,
            stream,
            scale=scale,
            precision=precision,
            projections=self.projections,
            parts=self.parts,
        )


def open_run(run: Run, state: State, variant: str) -> OpenRun:
    """Return the run, or our own module's chosen variant."""
    if run.fit is None:
        return OpenRun(run.alone(state.stream).trace)
    if state.own:
        own = run_own(run.fit.kept, OwnModule(state.d_model, state.heads, state.seed, state.positions), variant)
        return OpenRun(own.trace, own.projections, own.parts)
    return OpenRun(run.alone(state.stream).trace, projections(state.request, state.layer, run.stream(state.stream)))
