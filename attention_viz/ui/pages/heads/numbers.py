"""What is worked out of the traces in the cache, made once each for everybody who looks at them."""

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
    """What was made of a trace before; made now where it wasn't, in place of the oldest where there are many.

    Args:
        make: makes it; an error of it is nothing to keep.
    """
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
    """Every metric of every head of one text; of a long one by a sample of rows, unless all were measured before."""
    whole = _results.get(trace, {}).get(("table", stream, "all"))
    return made_once(trace, ("table", stream), lambda: _measured(trace, stream)) if whole is None else whole


def _measured(trace: Trace, stream: str) -> pandas.DataFrame:
    with unsaid():
        return head_table(trace, stream)


def measure_all(trace: Trace, stream: str, progress: Callable[[float], object]) -> None:
    """Every metric of every head from all rows, which `numbers` gives from then on."""
    with unsaid():
        made_once(trace, ("table", stream, "all"), lambda: head_table(trace, stream, rows="all", progress=progress))


def mean_numbers(traces: Sequence[Trace], stream: str) -> pandas.DataFrame:
    """The table of all heads as a mean over several texts, with its spread; of one text as it is."""
    if len(traces) == 1:
        return numbers(traces[0], stream)
    return mean_table([numbers(trace, stream) for trace in traces])


def distances(trace: Trace, stream: str) -> Float[Tensor, "one other"]:
    """How far every head is from every other."""
    return made_once(trace, ("distances", stream), lambda: head_distances(trace, stream))


def roles_of(traces: Sequence[Trace], stream: str, texts: Hashable) -> pandas.DataFrame:
    """What each head mostly does; `texts` tells of which texts, besides the first trace's."""
    return made_once(traces[0], ("roles", stream, texts), lambda: roles(traces, stream))


def packed(trace: Trace, stream: str, table: pandas.DataFrame, jobs: pandas.DataFrame, texts: Hashable) -> bytes:
    """The atlas for the browser; `texts` tells of which texts the tables are, besides the trace's."""
    what = ("atlas", stream, texts, table.attrs.get("rows"))
    return made_once(trace, what, lambda: pack_atlas(trace, stream, table, jobs))
