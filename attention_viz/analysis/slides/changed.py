"""Slide of one row before and after a change."""

from attention_viz.analysis.slides.shown import with_picture
from attention_viz.analysis.slides.slide import Part, Slide, begun, named, only_allowed, picture_of, row_of, source_of
from attention_viz.trace.trace import Trace

__all__ = ["changed_slides"]


def changed_slides(
    before: Trace, after: Trace, stream: str, layer: int, head: int, query: int, key: int, *, change: str = ""
) -> tuple[Slide, ...]:
    """Show one link's row before and after a change.

    Args:
        change: a sentence below the question; empty for none.
    """
    queries, keys = after.query_tokens(stream), after.key_tokens(stream)
    was, now = (row_of(trace, stream, layer, head, query) for trace in (before, after))
    allowed = after.attention(layer, stream).head(head).allowed
    blocked = allowed is not None and not bool(allowed.expand(len(queries), len(keys))[query, key])
    looking, seen = named(queries, query, "query"), named(keys, key, "key")
    now = only_allowed(now, after, stream, layer, head, query)
    picture = picture_of("bars", keys, now, None, key, before=was)
    gave: tuple[Part, ...] = ((f"{float(was[key]):.2f}", "number"),)
    ask = (*looking, (" gave ", ""), *gave, (" to ", ""), *seen, (". And now?", ""))
    if change:
        ask = (*ask, (change, "small"))
    if blocked:
        tell = (*looking, (" may not look at ", ""), *seen, (" any more: ", ""), ("0", "number"))
    else:
        tell = (*looking, (" now gives ", ""), (f"{float(now[key]):.2f}", "number"), (" to ", ""), *seen)
    slide = Slide(begun(ask), begun(tell), picture, source_of(after, f"layer {layer}, head {head}", picture))
    return (with_picture(slide, after, stream, now, query, key),)
