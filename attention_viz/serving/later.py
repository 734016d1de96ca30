"""Runs for files that are made later, which aren't kept in memory until then."""

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
    """Return a function that gives the run on the screen to whoever makes a file of it later.

    Each visitor's page waits for a button to be pressed. If it kept its run for that, all visitors' runs would stay in
    memory, whatever the limit. If the run had to go, the text runs once more.

    Args:
        longest: how many tokens of it were read at most.
    """
    trace = run.trace
    if run.fit is None or trace.seen.tensors:  # a file, a picture or a sound, which their visitor keeps anyway
        return lambda: trace
    kept = weakref.ref(trace)
    return lambda: kept() or run_request(request, longest=longest).trace
