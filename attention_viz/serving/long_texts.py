"""What a browser asks for of a long text after its first picture: a head at a time, and which heads link two tokens."""

from typing import TYPE_CHECKING, Any

from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES, long_text

if TYPE_CHECKING:
    from attention_viz.serving.runs import Drawn

__all__ = ["head_of", "ranking_of"]

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


def _pack(drawn: "Drawn", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.explorer import pack_head

    assert drawn.long_id is not None
    with ANALYSES, long_text(drawn.tokens):
        return pack_head(drawn.trace, stream, layer, head, drawn.long_id)


_heads: "SharedCache[tuple[str, str, int, int], bytes]" = SharedCache(_MOST_BYTES, len)
