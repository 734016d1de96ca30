"""Facts of an attention call's terms, for slicing, moving, comparing and storing.

`Attention`'s fields declare their axes; the rest follows, so that a new term is a field, its computation and a keyword.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar, cast

import torch

_Call = TypeVar("_Call")


@dataclass(frozen=True)
class TermAxes:
    """A term's last axes and kind of number.

    Attributes:
        names: ("query", "d_k") for a matrix behind leading axes, head last; ("head",) per head; empty for one number.
        logit: True if it divides with the softmax's input.
        positive: whether a lone number must be above 0.
        needed: False if it may be None.
    """

    names: tuple[str, ...] = ()
    logit: bool = False
    boolean: bool = False
    positive: bool = False
    needed: bool = False


@dataclass(frozen=True)
class Term:
    """A call's term.

    Attributes:
        name: its field's.
    """

    name: str
    axes: TermAxes

    @property
    def is_number(self) -> bool:
        """Whether it is a lone number."""
        return not self.axes.names

    @property
    def is_matrix(self) -> bool:
        """Return whether it has leading axes and positions."""
        return len(self.axes.names) == 2

    @property
    def has_queries(self) -> bool:
        """Whether it has a row for each query."""
        return self.axes.names[:1] == ("query",)


@cache
def terms_of(call: type) -> tuple[Term, ...]:
    """Return a call kind's terms in constructor order."""
    return tuple(Term(entry.name, entry.metadata["axes"]) for entry in fields(call) if "axes" in entry.metadata)


def has_others(call: object, names: Collection[str]) -> bool:
    """Return whether a call has terms beside these, so that what knows only these can't compute it."""
    return any(getattr(call, term.name) is not None for term in terms_of(type(call)) if term.name not in names)


def along(
    *names: str, logit: bool = False, boolean: bool = False, positive: bool = False, needed: bool = False
) -> dict[str, TermAxes]:
    """Return field `metadata` of a term; see `TermAxes`."""
    return {"axes": TermAxes(names, logit, boolean, positive, needed)}


def map_terms(call: _Call, change: Callable[[Term, Any], Any]) -> _Call:
    """Change each of a call's terms; missing ones stay missing."""
    values = ((term, getattr(call, term.name)) for term in terms_of(type(call)))
    return replace(cast("Any", call), **{term.name: change(term, value) for term, value in values if value is not None})


def on_device(call: _Call, device: torch.device) -> _Call:
    """Return a call with its tensors on a device."""
    return map_terms(call, lambda term, value: value if term.is_number else value.to(device))


def same_terms(one: object, other: object, same: Callable[[torch.Tensor, torch.Tensor], bool], *but: str) -> bool:
    """Compare two calls' terms: tensors by `same`, numbers for equality."""
    names = [term.name for term in terms_of(type(one)) if term.name not in but]
    return all(_same(getattr(one, name), getattr(other, name), same) for name in names)


def _same(one: object, other: object, same: Callable[[torch.Tensor, torch.Tensor], bool]) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one is other or same(one, other)
    return type(one) is type(other) and one == other
