"""A mask's effect on the whole model, cached with its runs."""

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
    """Cache `moved_of` by runs and stream: it is slow at 400 tokens."""
    with _keeping:
        kept = _kept.get(after)
    if kept is not None and kept[0]() is before and kept[1] == stream:
        return kept[2]
    found = moved_of(before, after, stream)
    with _keeping:
        _kept[after] = ref(before), stream, found
    return found
