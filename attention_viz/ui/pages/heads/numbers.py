"""Numbers computed from cached traces, once for all visitors."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pandas
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.head_table import head_table, mean_table
from attention_viz.analysis.likeness import head_distances
from attention_viz.analysis.roles import roles
from attention_viz.explorer.atlas_payload import pack_atlas
from attention_viz.trace.ahead import unsaid
from attention_viz.trace.trace import Trace

__all__ = ["distances", "made_once", "mean_numbers", "measure_all", "numbers", "packed", "roles_of"]

_Made = TypeVar("_Made")

# How many results are kept of one trace: searches are made of words that anybody may type.
_MOST = 24

_results: WeakKeyDictionary[Trace, dict[Hashable, Any]] = WeakKeyDictionary()


def made_once(trace: Trace, what: Hashable, make: Callable[[], _Made]) -> _Made:
    """Return a cached result of a trace, or make it (if full, the oldest goes); errors are not cached."""
    of_trace = _results.setdefault(trace, {})
    if what not in of_trace:
        made = make()
        while len(of_trace) >= _MOST:
            # Another visitor's run may have taken the same one away meanwhile.
            of_trace.pop(next(iter(of_trace)), None)
        of_trace[what] = made
        return made
    return of_trace[what]


def numbers(trace: Trace, stream: str) -> pandas.DataFrame:
    """Return every head's metrics; long texts use sampled rows until all are measured."""
    whole = _results.get(trace, {}).get(("table", stream, "all"))
    return made_once(trace, ("table", stream), lambda: _measured(trace, stream)) if whole is None else whole


def _measured(trace: Trace, stream: str) -> pandas.DataFrame:
    with unsaid():
        return head_table(trace, stream)


def measure_all(trace: Trace, stream: str, progress: Callable[[float], object]) -> None:
    """Measure every head from all rows, which `numbers` returns thereafter."""
    with unsaid():
        made_once(trace, ("table", stream, "all"), lambda: head_table(trace, stream, rows="all", progress=progress))


def mean_numbers(traces: Sequence[Trace], stream: str) -> pandas.DataFrame:
    """Average the heads' table over texts, with spread; one text stays unchanged."""
    if len(traces) == 1:
        return numbers(traces[0], stream)
    return mean_table([numbers(trace, stream) for trace in traces])


def distances(trace: Trace, stream: str) -> Float[Tensor, "one other"]:
    """How far every head is from every other."""
    return made_once(trace, ("distances", stream), lambda: head_distances(trace, stream))


def roles_of(traces: Sequence[Trace], stream: str, texts: Hashable) -> pandas.DataFrame:
    """Return each head's main role; `texts` names texts beyond the first trace's."""
    return made_once(traces[0], ("roles", stream, texts), lambda: roles(traces, stream))


def packed(trace: Trace, stream: str, table: pandas.DataFrame, jobs: pandas.DataFrame, texts: Hashable) -> bytes:
    """Pack the atlas; `texts` names the tables' texts beyond the trace's."""
    what = ("atlas", stream, texts, table.attrs.get("rows"))
    return made_once(trace, what, lambda: pack_atlas(trace, stream, table, jobs))
