"""What is known of each term of an attention call, told once: whoever slices, moves, compares or stores them asks here.

`Attention` lists its terms as its fields, and says of each what stands along its axes. Everything else follows from
that, so that a new term is a field, a line where it is computed, and a keyword where models hand it over.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar, cast

import torch

__all__ = ["Term", "TermAxes", "along", "map_terms", "same_terms", "terms_of"]

_Call = TypeVar("_Call")


@dataclass(frozen=True)
class TermAxes:
    """What a term has along its last axes, and what its numbers are.

    Attributes:
        names: such as ("query", "d_k") for a matrix in front of which stand the leading axes, the last of them the
            head; ("head",) for one number a head; none for one number for all.
        logit: whether its numbers are of the softmax's own kind, so that dividing all that enters it divides them.
        boolean: whether it is made of truth values.
        positive: whether a lone number has to be above 0.
        needed: whether every call has it; otherwise it may be None.
    """

    names: tuple[str, ...] = ()
    logit: bool = False
    boolean: bool = False
    positive: bool = False
    needed: bool = False


@dataclass(frozen=True)
class Term:
    """One term of an attention call.

    Attributes:
        name: as the call's field is called.
    """

    name: str
    axes: TermAxes

    @property
    def is_number(self) -> bool:
        """Whether it is a lone number."""
        return not self.axes.names

    @property
    def is_matrix(self) -> bool:
        """Whether leading axes stand before it, and positions along it."""
        return len(self.axes.names) == 2

    @property
    def has_queries(self) -> bool:
        """Whether it has a row for each query."""
        return self.axes.names[:1] == ("query",)


@cache
def terms_of(call: type) -> tuple[Term, ...]:
    """The terms that a kind of call has, in the order in which its constructor takes them."""
    return tuple(Term(entry.name, entry.metadata["axes"]) for entry in fields(call) if "axes" in entry.metadata)


def along(
    *names: str, logit: bool = False, boolean: bool = False, positive: bool = False, needed: bool = False
) -> dict[str, TermAxes]:
    """What a field's `metadata` says of a term; see `TermAxes`."""
    return {"axes": TermAxes(names, logit, boolean, positive, needed)}


def map_terms(call: _Call, change: Callable[[Term, Any], Any]) -> _Call:
    """The call with each of its terms changed; what it doesn't have stays away."""
    values = ((term, getattr(call, term.name)) for term in terms_of(type(call)))
    return replace(cast("Any", call), **{term.name: change(term, value) for term, value in values if value is not None})


def same_terms(one: object, other: object, same: Callable[[torch.Tensor, torch.Tensor], bool], *but: str) -> bool:
    """Whether two calls have the same terms.

    Args:
        same: whether two tensors count as the same; numbers have to be equal.
    """
    names = [term.name for term in terms_of(type(one)) if term.name not in but]
    return all(_same(getattr(one, name), getattr(other, name), same) for name in names)


def _same(one: object, other: object, same: Callable[[torch.Tensor, torch.Tensor], bool]) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one is other or same(one, other)
    return type(one) is type(other) and one == other
