"""`resolve`: what follows from a run for what nobody chose, as a pure function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from attention_viz.trace.shown.kind import InputKind
from attention_viz.ui.selection.events import Filled
from attention_viz.ui.selection.update import update
from attention_viz.ui.selection.value import PAIR, SHARED, Selection

__all__ = ["HeadFinding", "Ran", "resolve"]


class HeadFinding(Protocol):
    """The head that a text's best finding is about."""

    @property
    def layer(self) -> int:
        """The layer's number."""
        ...

    @property
    def head(self) -> int:
        """The head's number in its layer."""
        ...

    @property
    def stream(self) -> str:
        """The kind of attention."""
        ...


@dataclass(frozen=True)
class Ran:
    """What a run says about a selection.

    Attributes:
        counts: the numbers of queries and keys, by stream.
        best: finds the best finding; None if there is none.
    """

    counts: Mapping[str, tuple[int, int]]
    best: Callable[[], HeadFinding | None]


def resolve(selection: Selection, ran: Ran) -> Selection:
    """Return the selection with what follows from a run; twice is the same as once.

    A pair that the text doesn't have goes. A head that nobody chose becomes the best finding's.
    """
    return replace(_resolved(selection, ran), found_for=selection.text)


def _resolved(selection: Selection, ran: Ran) -> Selection:
    shared = selection.shared
    stream = shared.stream if shared.stream in ran.counts else None
    stream = stream or next(iter(ran.counts))
    pair = zip((shared.query, shared.key), ran.counts[stream], strict=True)
    if any(at is not None and at >= count for at, count in pair):
        selection = update(selection, Filled(SHARED, dict.fromkeys(PAIR)))
        shared = selection.shared
    has_pair = shared.query is not None or shared.key is not None
    if not selection.head_is_free or has_pair or (best := ran.best()) is None:
        return selection
    values: dict[str, Any] = {"layer": best.layer, "head": best.head}
    if len(ran.counts) > 1 and best.stream != stream:
        # People bring a sound to see what is said of it: no finding of the encoder takes the cross-attention away.
        said = shared.facts.reads == InputKind.SOUND and stream == "cross"
        if "stream" in selection.chosen or said:
            return selection
        values["stream"] = best.stream
    if all(getattr(shared, name) == value for name, value in values.items()):
        return selection
    return update(selection, Filled(SHARED, values))
