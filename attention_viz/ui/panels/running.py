"""Other packages' panels: found, run in threads of their own, and their outcomes by trace and selection."""

import functools
import threading
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import pandas
import plotly.graph_objects as go
from cachetools import LRUCache

from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.once import once_for_each

if TYPE_CHECKING:
    from attention_viz.explorer.widgets.head_selection import Selection
    from attention_viz.trace.trace import Trace

GROUP = "attention_viz.panels"
# Characters of HTML, and rows of a table.
MOST_HTML, MOST_ROWS = 2_000_000, 10_000
# Outcomes per trace; the last used stay.
_MOST = 16
# Panels that run at one time, of all visitors together.
_THREADS = 2


@dataclass(frozen=True, eq=False)
class PanelOutcome:
    """A panel's table, figure or HTML; or its error, which keeps no run alive."""

    shown: Any = None
    error: str = ""


class _Outcomes:
    """One trace's outcomes by panel and selection, those in the making too."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.futures: LRUCache[Hashable, Future[PanelOutcome]] = LRUCache(_MOST)


@once_for_each
def _outcomes(_trace: "Trace") -> _Outcomes:
    return _Outcomes()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="panel")


def panels() -> tuple[EntryPoint, ...]:
    """Return the installed panels by name; none if the operator switched them off."""
    if not SETTINGS.panels:
        return ()
    return tuple(sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)))


def run_panel(panel: EntryPoint, trace: "Trace", selection: "Selection") -> "Future[PanelOutcome]":
    """Return a panel's outcome, made once; a cancelled one begins again."""
    outcomes, what = _outcomes(trace), (panel.name, panel.value, selection)
    with outcomes.lock:
        found = outcomes.futures.get(what)
        if found is None or found.cancelled():
            found = outcomes.futures[what] = _pool().submit(_outcome, panel, trace, selection)
    return found


def _outcome(panel: EntryPoint, trace: "Trace", selection: "Selection") -> PanelOutcome:
    try:
        return PanelOutcome(_checked(panel.load()(trace, selection)))
    except Exception as error:  # it is another package's: whatever goes wrong is shown in its place
        return PanelOutcome(error=f"{type(error).__name__}: {error}")


def _checked(shown: Any) -> Any:
    if isinstance(shown, pandas.DataFrame | go.Figure):
        return shown
    if not isinstance(shown, str):
        raise TypeError(f"a panel returns a DataFrame, a Plotly figure or HTML; got {type(shown).__name__}")
    if len(shown) > MOST_HTML:
        raise ValueError(f"a panel's HTML has at most {MOST_HTML:,} characters; got {len(shown):,}")
    return shown
