"""Part of an attention call without a copy of it: its first queries, its first keys, some queries in a row."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms

__all__ = ["between", "first", "narrowed"]


def first(call: Attention, *, queries: int | None = None, keys: int | None = None) -> Attention:
    """The call for its first queries and its first keys, all of them by default; the tensors are views.

    The weights of fewer keys are those of the whole where nothing beyond them may be looked at.
    """
    counts = {"query": queries, "key": keys}
    return map_terms(call, lambda term, value: narrowed(term, value, counts))


def narrowed(term: Term, value: Any, counts: Mapping[str, int | None]) -> Any:
    """A term for the first of its queries and its first keys; a view.

    Args:
        counts: of "query" and "key" how many; None for all.
    """
    if not isinstance(value, Tensor):
        return value
    for axis, name in enumerate(term.axes.names, start=-len(term.axes.names)):
        count = counts.get(name)
        if count is not None and value.shape[axis] > count:
            value = value.narrow(axis, 0, count)
    return value


def between(call: Attention, start: int, stop: int) -> Attention:
    """The call for its queries from one position up to another, that one left out; the tensors are views."""
    queries = call.shape[-2]

    def narrow(term: Term, value: Any) -> Any:
        if not term.has_queries or value.shape[-2] != queries:
            return value
        return value.narrow(-2, start, stop - start)

    return map_terms(call, narrow)
