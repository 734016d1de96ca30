"""A slide of where two heads differ most: the row with the largest difference, of the first and of the second."""

from attention_viz.analysis.comparison.align import Axis
from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.analysis.slides.slide import Slide, begun, named, picture_of, source_of
from attention_viz.trace.tokens import Tokens

__all__ = ["compared_slides"]


def compared_slides(comparison: Comparison) -> tuple[Slide, ...]:
    """The largest difference of two heads: asked with the first head's row, answered with the second's.

    Words that both have are looked at, the same or one in the other's place; none where there are none. The source
    names both texts.

    Args:
        comparison: two heads on common axes.
    """
    queries, keys = comparison.queries, comparison.keys
    side = comparison.other
    tokens = side.trace.key_tokens(side.stream)
    both = _words(queries, side.trace.query_tokens(side.stream)), _words(keys, tokens)
    if not all(both):
        return ()
    apart = comparison.difference[both[0]][:, both[1]].abs().nan_to_num()
    row, column = divmod(int(apart.argmax()), apart.shape[1])
    query, key = both[0][row], both[1][column]
    # In the words of the second text, whose row is the answer.
    theirs = [at for at, position in enumerate(keys.other) if position is not None]
    now, was = comparison.other_weights[query][theirs], comparison.weights[query][theirs]
    looking = named(side.trace.query_tokens(side.stream), queries.other[query] or 0, "query")
    seen = named(tokens, keys.other[key] or 0, "key")
    before = comparison.one
    asking = named(before.trace.query_tokens(before.stream), queries.one[query] or 0, "query")
    asked = named(before.trace.key_tokens(before.stream), keys.one[key] or 0, "key")
    first, second = (f"{float(one[query, key]):.2f}" for one in (comparison.weights, comparison.other_weights))
    ask = begun((*asking, (" gives ", ""), (first, "number"), (" to ", ""), *asked, (". And in the other?", "")))
    tell = (("In the other, ", ""), *looking, (" gives ", ""), (second, "number"), (" to ", ""), *seen)
    picture = picture_of("bars", tokens, now, None, theirs.index(key), before=was)
    source = f"{_said(comparison.one, side)} → {source_of(side.trace, _where(side), picture)}"
    return (Slide(ask, tell, picture, source),)


def _words(axis: Axis, tokens: Tokens) -> list[int]:
    """The places of what both texts say: what a tokenizer or a model added to them is left out."""
    said = set(tokens.counted)
    return [at for at in axis.both if axis.counted[at] and axis.other[at] in said]


def _said(side: Side, other: Side) -> str:
    """The first side, with its text where the second has another."""
    if side.trace.provenance.text != other.trace.provenance.text:
        return source_of(side.trace, _where(side), None)
    return f"{side.trace.provenance.model} · {_where(side)}"


def _where(side: Side) -> str:
    return f"layer {side.layer}, head {side.head}"
