"""The head and the pair of tokens on an explorer's screen, as Python reads and sets them."""

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attention_viz.errors import TraceError
from attention_viz.explorer.widgets.head_selection import check_head, check_pair

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["NAMES", "HeadWidget", "MaskWidget", "Selecting", "Selection", "checked"]

NAMES = ("stream", "layer", "head", "query", "key")


class Selection(dict[str, Any]):
    """A dictionary that refuses changes in place, since the screen wouldn't hear of them."""

    def __setitem__(self, name: str, value: object) -> None:
        """Refuse to change one value in place."""
        raise TypeError(f"a selection doesn't change in place; assign another: explorer.selection = {{{name!r}: …}}")


class Selecting:
    """Something with a selection, which calls functions with each new one."""

    _listeners: list[Callable[[Selection], object]]

    def on_select(self, function: Callable[[Selection], object], *, remove: bool = False) -> None:
        """Call a function with each new selection, of the reader's or of Python's; one call at a time.

        Args:
            function: takes the selection.
            remove: whether to stop calling it.
        """
        if remove:
            self._listeners.remove(function)
        else:
            self._listeners.append(function)


class HeadWidget(Protocol):
    """A notebook widget that shows one head: an `anywidget` with the members of `Explorer`'s selection.

    Attributes:
        selection: stream, layer, head, query and key, as in `Explorer`.
    """

    selection: Any

    def on_select(self, function: Callable[[Selection], object], *, remove: bool = False) -> None:
        """Call a function with each new selection, or stop calling it; see `Explorer.on_select`."""
        ...


class MaskWidget(HeadWidget, Protocol):
    """A notebook widget of one head with a mask.

    Attributes:
        allowed: the mask, (query, key), True if a query may attend to a key; None without one. Assign a boolean tensor
            to run the model with it; the reader paints it, too.
    """

    allowed: Any

    @property
    def trace(self) -> "Trace":
        """The run with the mask; without one, the trace itself."""
        ...


def checked(trace: "Trace", before: Mapping[str, Any], wanted: object) -> Selection:
    """Return a selection that the trace has; missing names stay, but a pair of another stream's tokens doesn't.

    Raises:
        TraceError: a name, stream or layer doesn't exist, a number isn't whole, or half a pair is missing.
        ShapeError: the head or the position doesn't exist.
    """
    if not isinstance(wanted, Mapping):
        raise TraceError(f"a selection is a dictionary with {', '.join(NAMES)}; got {wanted!r}")
    if unknown := [name for name in wanted if name not in NAMES]:
        raise TraceError(f"a selection has no {unknown[0]!r}; it has {', '.join(NAMES)}")
    stream = trace.stream(wanted.get("stream") or before["stream"])
    pair = {"query": None, "key": None} if stream != before["stream"] else {}
    found = {**before, **pair, **wanted, "stream": stream}
    layer, head = _whole("layer", found["layer"]), _whole("head", found["head"])
    # Channels of a layer without a softmax count as heads.
    check_head(stream, layer, head, trace.head_count(layer, stream))
    query, key = _pair(trace, stream, found["query"], found["key"])
    return Selection(stream=stream, layer=layer, head=head, query=query, key=key)


def _pair(trace: "Trace", stream: str, query: object, key: object) -> tuple[int | None, int | None]:
    if query is None and key is None:
        return None, None
    if query is None or key is None:
        raise TraceError(f"a pair has a query and a key; got query {query}, key {key}; set both, or both to None")
    positions = _whole("query", query), _whole("key", key)
    check_pair(trace, stream, *positions)
    return positions


def _whole(name: str, value: object) -> int:
    try:
        # A table's index has whole numbers of numpy's, which JSON knows nothing of.
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise TraceError(f"{name} {value!r} isn't a whole number") from None
