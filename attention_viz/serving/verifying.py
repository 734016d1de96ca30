"""Comparisons for the badges, each made once, in visitors' threads."""

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from attention_viz.serving.door import keep_turn, long_text, turn
from attention_viz.serving.run import Run

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

# Seconds between two checks whether a visitor still waits for a comparison.
_MOMENT = 0.2
_comparisons: "WeakKeyDictionary[Trace, _Verification]" = WeakKeyDictionary()
_comparing = threading.Lock()


def verify(run: Run, still_wanted: "Callable[[], object]" = lambda: None) -> None:
    """Measure the trace's fidelity in the first visitor's turn; `still_wanted` stops the wait, not the measurement."""
    trace = run.trace
    with _comparing:
        if trace not in _comparisons:
            _comparisons[trace] = _Verification(lambda: trace.fidelity, run.tokens)
            _comparisons[trace].start()
        comparison = _comparisons[trace]
    while comparison.is_alive():
        comparison.join(_MOMENT)
        still_wanted()
    _ = trace.fidelity  # known by now, or raises the error


class _Verification(threading.Thread):
    def __init__(self, make: "Callable[[], object]", tokens: int) -> None:
        super().__init__(daemon=True, name="comparison")
        self._make, self._tokens, self._turn = make, tokens, turn()

    def run(self) -> None:
        keep_turn(self._turn)
        with long_text(self._tokens), contextlib.suppress(Exception):
            _ = self._make()
        del self._make  # it keeps the trace
