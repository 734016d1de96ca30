"""A chosen head with its pair of tokens, as hosts of a component read and set it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from attention_viz.errors import AttentionVizError, ShapeError

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["Selection", "check_head", "check_pair", "checked", "heard", "merged", "moved_to"]


@dataclass(frozen=True)
class Selection:
    """A chosen head, and the pair of tokens chosen in it.

    Attributes:
        stream: "encoder", "decoder", "cross", "mixer" or the name of an image's or audio's stream.
        layer: the model's own layer number.
        head: from 0.
        query: the query's position; None if no pair is chosen.
        key: the key's position; None if no pair is chosen.
    """

    stream: str
    layer: int
    head: int
    query: int | None = None
    key: int | None = None


_NAMES, _PAIR = tuple(field.name for field in fields(Selection)), ("query", "key")


def merged(trace: "Trace", before: Selection, wanted: "Selection | Mapping[str, Any]") -> Selection:
    """Return a program's choice; missing names stay, but another head drops the pair.

    Raises:
        ValueError: unknown names, or half a pair.
        TraceError: no such stream or layer.
        ShapeError: no such head or position.
    """
    named = asdict(wanted) if isinstance(wanted, Selection) else dict(wanted)
    if unknown := named.keys() - set(_NAMES):
        raise ValueError(f"unknown name {min(map(repr, unknown))} in a selection; choose {', '.join(_NAMES)}")
    kept = {} if named.keys() & {"stream", "layer", "head"} else {"query": before.query, "key": before.key}
    numbers = {name: _whole(one, name) for name, one in named.items() if name != "stream"}
    return checked(trace, replace(before, **{"query": None, "key": None, **kept, **named, **numbers}))


def heard(trace: "Trace", before: Selection, message: object) -> Selection:
    """Return a browser's choice; the one before if this trace can't have it, since a browser may send anything."""
    if not isinstance(message, Mapping):
        return before
    named: dict[str, Any] = {name: message[name] for name in _NAMES if name in message}
    numbers = [one for name, one in named.items() if name != "stream" and not (one is None and name in _PAIR)]
    if any(type(one) is not int for one in numbers) or not isinstance(named.get("stream", ""), str):
        return before
    return _or(before, lambda: checked(trace, replace(before, **named)))


def moved_to(trace: "Trace", before: Selection, opening: Callable[[], Selection]) -> Selection:
    """Return the same head in another trace, without a pair; if it isn't there, `opening`."""
    try:
        return checked(trace, replace(before, query=None, key=None))
    except AttentionVizError:
        return opening()


def _whole(number: Any, name: str) -> int | None:
    """Return a plain whole number: a table's are numpy's, which JSON knows nothing of."""
    if number is None and name in _PAIR:
        return None
    return index(cast("SupportsIndex", number))


def _or(before: Selection, find: Callable[[], Selection]) -> Selection:
    try:
        return find()
    except (AttentionVizError, ValueError):
        return before


def checked(trace: "Trace", one: Selection) -> Selection:
    """Return a selection that the trace has, or raise as `merged`."""
    stream = trace.stream(one.stream)
    check_head(stream, one.layer, one.head, trace.head_count(one.layer, stream))
    if (one.query is None) != (one.key is None):
        raise ValueError("a pair needs both query and key; give both or neither")
    if one.query is not None and one.key is not None:
        check_pair(trace, stream, one.query, one.key)
    return one


def check_head(stream: str, layer: int, head: int, heads: int) -> None:
    """Refuse a head that the layer doesn't have; `heads` is how many it has."""
    if not 0 <= head < heads:
        raise ShapeError(f"layer {layer} of the {stream} has no head {head}; choose 0 to {heads - 1}")


def check_pair(trace: "Trace", stream: str, query: int, key: int) -> None:
    """Refuse positions beyond a stream's tokens."""
    sides = ("query", query, trace.query_tokens(stream)), ("key", key, trace.key_tokens(stream))
    for name, position, tokens in sides:
        if not 0 <= position < len(tokens):
            raise ShapeError(f"the {stream} has no {name} {position}; choose 0 to {len(tokens) - 1}")
