"""Runs for files made later, not kept in memory until then."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from attention_viz.serving.runs import run_request

if TYPE_CHECKING:
    from attention_viz.serving.request import Request
    from attention_viz.serving.runs import Run
    from attention_viz.trace.trace import Trace

__all__ = ["lent"]


def lent(run: "Run", request: "Request", longest: int) -> "Callable[[], Trace]":
    """Return a function that fetches the shown run for a later file.

    If pages kept runs, all would stay in memory, whatever the limit. An evicted text runs again, at most `longest`
    tokens.
    """
    trace = run.trace
    if run.fit is None or trace.seen.tensors:  # a file, a picture or a sound, which their visitor keeps anyway
        return lambda: trace
    kept = weakref.ref(trace)
    return lambda: kept() or run_request(request, longest=longest).trace
