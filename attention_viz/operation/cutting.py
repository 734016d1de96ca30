"""Views of parts of an attention call."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms
from attention_viz.operation.token_mixer import TokenMixer

_Cut = TypeVar("_Cut", Attention, TokenMixer)


def first(call: _Cut, *, queries: int | None = None, keys: int | None = None) -> _Cut:
    """View the call's first queries and keys, all by default; weights stay if keys beyond are blocked."""
    counts = {"query": queries, "key": keys}
    return map_terms(call, lambda term, value: narrowed(term, value, counts))


def narrowed(term: Term, value: Any, counts: Mapping[str, int | None]) -> Any:
    """View a term's first queries and keys, by counts of each; None for all."""
    if not isinstance(value, Tensor):
        return value
    for axis, name in enumerate(term.axes.names, start=-len(term.axes.names)):
        count = counts.get(name)
        if count is not None and value.shape[axis] > count:
            # An index, which a mask without cells in memory answers by the few that are taken.
            value = value[(..., slice(count), *(slice(None),) * (-axis - 1))]
    return value


def between(call: Attention, start: int, stop: int) -> Attention:
    """View the call's queries in a range, end excluded."""
    queries = call.shape[-2]

    def narrow(term: Term, value: Any) -> Any:
        if not term.has_queries or value.shape[-2] != queries:
            return value
        return value[..., start:stop, :]

    return map_terms(call, narrow)


def some_cells(call: Attention, heads: Sequence[int] | None, queries: int | None) -> Attention:
    """Copy some heads of a call, with the keys and values that they share, and its last queries; None for all."""
    rows, count = call.shape[-2:-1][0], call.query.shape[-3]

    def cut(term: Term, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if queries is not None and term.has_queries and value.shape[-2] == rows:
            value = value[..., max(0, rows - queries) :, :]
        if heads is None:
            return value.clone() if term.has_queries else value
        if not term.is_matrix:
            return value[..., list(heads)] if value.ndim and value.shape[-1] > 1 else value
        if value.ndim < 3 or value.shape[-3] == 1:
            return value
        chosen = [head // (count // value.shape[-3]) for head in heads]
        once = sorted({*chosen})
        # Heads in groups of one size share theirs as before; others get their own.
        each = len(chosen) // len(once)
        even = chosen == [one for one in once for _ in range(each)]
        return value[..., once if even else chosen, :, :]

    return map_terms(call, cut)


def block(call: Attention, start: int, stop: int) -> Attention:
    """View the call's queries and keys in one range, end excluded."""
    counts = {"query": call.shape[-2], "key": call.shape[-1]}

    def narrow(term: Term, value: Any) -> Any:
        for axis, name in enumerate(term.axes.names, start=-len(term.axes.names)):
            if name in counts and value.shape[axis] == counts[name]:
                value = value.narrow(axis, start, stop - start)
        return value

    return map_terms(call, narrow)
