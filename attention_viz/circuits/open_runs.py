"""The run behind a trace, opened and kept for repeated use."""

import threading
import weakref
from typing import TYPE_CHECKING

from torch import Tensor

from attention_viz.circuits.opened import OpenedRun, open_run
from attention_viz.errors import TraceError
from attention_viz.operation.numerics import REPEATED, close
from attention_viz.protocol.needing import need_trained
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.weights.unchanged import changed
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

__all__ = ["check_model", "is_output_of", "open_alone", "open_behind", "run_behind"]


_lock = threading.Lock()
# The trace that was opened last, and its run: the second number of a text costs a fraction of the first.
_last: tuple["weakref.ref[Trace]", OpenedRun] | None = None


def open_behind(model: "AttentionModel", trace: Trace) -> tuple[ModelRun, OpenedRun]:
    """Return a trace's run, also opened; kept while the trace lives."""
    check_model(model, trace)
    return open_alone(trace)


def open_alone(trace: Trace) -> tuple[ModelRun, OpenedRun]:
    """Open a trace's run without its model."""
    run = _run(trace)
    with _lock:
        return run, _opened(trace, run)


def _opened(trace: Trace, run: ModelRun) -> OpenedRun:
    global _last
    if _last is not None and _last[0]() is trace:
        return _last[1]
    _last = None
    if bool(trace.output.isnan().any()):
        raise TraceError(
            f"the output of {run.name} holds NaN, so its weights may, too, and nothing that it says can be taken apart"
        )
    opened = open_run(run)
    if not is_output_of(opened.output, trace):
        raise changed(run.name)
    _last = (weakref.ref(trace, _forget), opened)
    return opened


def is_output_of(output: Tensor, trace: Trace) -> bool:
    """Return whether a new run matches, but for rounding."""
    found, there = (one.detach().cpu().float() for one in (output, trace.output))
    return close(found, there, REPEATED)


def _forget(gone: object) -> None:
    global _last
    if _last is not None and _last[0] is gone:
        _last = None


def run_behind(model: "AttentionModel", trace: Trace) -> ModelRun:
    """The run behind a trace."""
    check_model(model, trace)
    return _run(trace)


def check_model(model: "AttentionModel", trace: Trace) -> None:
    """Refuse a model that a trace isn't of."""
    need_trained(model)
    if trace.provenance.model != model.name:
        raise TraceError(f"a trace of {trace.provenance.model} was given; {model.name} knows only its own")


def _run(trace: Trace) -> ModelRun:
    run = behind(trace).run
    if not isinstance(run, ModelRun):
        raise TraceError(
            "what wrote a number was asked of a trace without a model behind it: it comes from a file, or was made of "
            "another trace; trace the text anew"
        )
    behind(trace).check()
    return run
