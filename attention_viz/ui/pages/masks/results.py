"""What a mask did in the whole model, kept as long as both of its runs are: a page is drawn anew at every press."""

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from attention_viz.explorer.mask_payload import MaskEffect, moved_of

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["moved"]

# By the run with the mask: what it was compared with, in which stream, and what came of it.
_kept: "WeakKeyDictionary[Trace, tuple[ref[Trace], str, MaskEffect]]" = WeakKeyDictionary()
_keeping = threading.Lock()


def moved(before: "Trace", after: "Trace", stream: str) -> MaskEffect:
    """As `moved_of`, worked out once for the same two runs and stream.

    It doesn't depend on the head, the pair or the view that are chosen, and of 400 tokens it takes most of a page's
    time.
    """
    with _keeping:
        kept = _kept.get(after)
    if kept is not None and kept[0]() is before and kept[1] == stream:
        return kept[2]
    found = moved_of(before, after, stream)
    with _keeping:
        _kept[after] = ref(before), stream, found
    return found
