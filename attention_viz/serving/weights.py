"""Heads by a model's weights alone, worked out once for all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.errors import AttentionVizError
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.request import Request
from attention_viz.serving.runs import ask
from attention_viz.serving.why import Head, pretrained

if TYPE_CHECKING:
    import pandas

    from attention_viz.protocol.model import Model

__all__ = ["ByWeights", "by_weights"]

# What all tables may take together, in bytes.
_ROOM = 20_000_000


@dataclass(frozen=True, eq=False)
class ByWeights:
    """A head's `av.circuits` and earlier `av.compositions`; a sentence if unknown."""

    circuits: "pandas.DataFrame | str"
    into: "pandas.DataFrame | str"


def by_weights(request: Request, stream: str, place: Head) -> ByWeights:
    """Return a head's numbers; the request's text doesn't matter."""
    asked = request.model, stream, place
    return _found.get(asked, lambda: ask(request, lambda model: _open(model, request.model, stream, place)))


def _open(model: "Model", name: str, stream: str, place: Head) -> ByWeights:
    from attention_viz.circuits.compositions import compositions_of
    from attention_viz.circuits.weights import circuits_of, proven

    # Both come of the same matrices, which are too large to be kept.
    known = proven(pretrained(model), stream)
    circuits = _circuits.get((name, stream), lambda: _phrase(lambda: circuits_of(known)))
    return ByWeights(circuits, _phrase(lambda: compositions_of(known, [place])))


def _phrase(make: "Callable[[], pandas.DataFrame]") -> "pandas.DataFrame | str":
    try:
        return make()
    except AttentionVizError as error:
        return str(error)


def _size(table: "pandas.DataFrame | str") -> int:
    return 2 * len(table) if isinstance(table, str) else int(table.memory_usage(deep=True).sum())


_circuits: "SharedCache[tuple[str, str], pandas.DataFrame | str]" = SharedCache(_ROOM, _size)
_found: "SharedCache[tuple[str, str, Head], ByWeights]" = SharedCache(
    _ROOM, lambda one: _size(one.circuits) + _size(one.into)
)
