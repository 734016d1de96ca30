"""What is asked for of a long text after its first picture: a head at a time, which heads link two tokens, a file."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES, long_text
from attention_viz.serving.runs import draw

if TYPE_CHECKING:
    from attention_viz.serving.request import Request
    from attention_viz.serving.runs import Drawn
    from attention_viz.trace.trace import Trace

__all__ = ["head_of", "lent", "ranking_of"]

# The heads that were looked at last, of all texts together, in bytes: of 8,000 tokens each is some five megabytes.
_MOST_BYTES = 96_000_000
# How many heads a ranking names.
_MOST_RANKED = 10


def head_of(drawn: "Drawn", stream: str, layer: int, head: int) -> bytes | None:
    """One head as its terms, for a browser that has the rest of the text already; None where it has all weights.

    Args:
        drawn: what is on the screen.
        stream: which attention.
        layer: from 0.
        head: from 0.

    Raises:
        TraceError: the head can't be drawn; the message says why.
    """
    if drawn.long_id is None:
        return None
    # Of a picture or a sound they go with it: it may be a visitor's own.
    kept = drawn.heads if drawn.trace.seen.tensors else _heads
    return kept.get((drawn.long_id, stream, layer, head), lambda: _pack(drawn, stream, layer, head))


def ranking_of(drawn: "Drawn", asked: dict[str, Any] | None) -> dict[str, Any] | None:
    """The heads that link the pair which the browser asked for, as it reads them; None where it asked for none of this.

    Args:
        drawn: what is on the screen.
        asked: what the browser sent: of, stream, query and key.
    """
    from attention_viz.analysis.search import rank_heads

    if asked is None or drawn.long_id is None or asked.get("of") != drawn.long_id:
        return None
    stream, query, key = drawn.stream(asked["stream"]), int(asked["query"]), int(asked["key"])
    with ANALYSES:
        found = rank_heads(drawn.trace, stream, query, key)[:_MOST_RANKED]
    ranked = [{"layer": layer, "head": head, "weight": weight} for layer, head, weight in found]
    return {"of": drawn.long_id, "stream": stream, "query": query, "key": key, "ranked": ranked}


def lent(drawn: "Drawn", request: "Request", longest: int) -> "Callable[[], Trace]":
    """What gives the run on the screen to whoever makes a file of it later, and doesn't keep it until then.

    Each visitor's page waits for a button to be pressed, and by keeping its run for that, all visitors' runs would be
    in memory, whatever the limit. Where it had to go, the text runs once more.

    Args:
        drawn: what is on the screen, as `draw` gave it.
        request: what was asked for.
        longest: how many tokens of it were read at most.
    """
    trace = drawn.trace
    if drawn.fit is None or trace.seen.tensors:  # a file, a picture or a sound, which their visitor keeps anyway
        return lambda: trace
    kept = weakref.ref(trace)
    return lambda: kept() or draw(request, longest=longest).trace


def _pack(drawn: "Drawn", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.explorer import pack_head

    assert drawn.long_id is not None
    with ANALYSES, long_text(drawn.tokens):
        return pack_head(drawn.trace, stream, layer, head, drawn.long_id)


_heads: "SharedCache[tuple[str, str, int, int], bytes]" = SharedCache(_MOST_BYTES, len)
