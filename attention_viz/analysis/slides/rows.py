"""Slides of one row before and after a change, and of two heads' rows."""

from attention_viz.analysis.comparison.align import AlignedAxis
from attention_viz.analysis.comparison.compare import Comparison, Side
from attention_viz.analysis.slides.shares import patch_shares
from attention_viz.analysis.slides.slide import (
    Part,
    Slide,
    SlidePicture,
    begun,
    named,
    only_allowed,
    picture_of,
    row_of,
    shortened,
    source_of,
    with_picture,
)
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace


def changed_slides(
    before: Trace, after: Trace, stream: str, layer: int, head: int, query: int, key: int, *, change: str = ""
) -> tuple[Slide, ...]:
    """Show one link's row before and after a change, which a sentence may describe."""
    queries, keys = after.query_tokens(stream), after.key_tokens(stream)
    was, now = (row_of(trace, stream, layer, head, query) for trace in (before, after))
    allowed = after.attention(layer, stream).head(head).allowed
    blocked = allowed is not None and not bool(allowed.expand(len(queries), len(keys))[query, key])
    looking, seen = named(queries, query, "query"), named(keys, key, "key")
    now = only_allowed(now, after, stream, layer, head, query)
    picture = patch_shares(keys, now, key, before=was) or picture_of("bars", keys, now, None, key, before=was)
    ask = (*_looks(looking, seen, weight_text(float(was[key])), "looked"), (". And now?", ""))
    if change:
        ask = (*ask, (change, "small"))
    if blocked:
        tell = (*looking, (" can no longer look at ", ""), *seen, (": ", ""), ("0", "number"))
    else:
        tell = _looks(looking, seen, weight_text(float(now[key])), "now looks")
    slide = Slide(begun(ask), begun(tell), picture, source_of(after, f"layer {layer}, head {head}", picture))
    return (with_picture(slide, after, stream, now, query, key),)


def compared_slides(
    comparison: Comparison, pair: tuple[int, int] | None = None, *, called: str = "in the second"
) -> tuple[Slide, ...]:
    """Show a chosen pair and the largest difference between words of both texts; `called` is the second side.

    Heads without a softmax are compared in shares of size, from `in_shares`.
    """
    side = comparison.other
    tokens = side.trace.key_tokens(side.stream)
    rows, columns = _words(comparison.queries, side.trace.query_tokens(side.stream)), _words(comparison.keys, tokens)
    if not rows or not columns:
        return ()
    apart = comparison.difference[rows][:, columns].abs().nan_to_num()
    row, column = divmod(int(apart.argmax()), apart.shape[1])
    chosen = [] if pair is None or pair[0] not in rows or pair[1] not in columns else [pair]
    places = dict.fromkeys([*chosen, (rows[row], columns[column])])
    return tuple(_slide(comparison, *place, called) for place in places)


def _slide(comparison: Comparison, query: int, key: int, called: str) -> Slide:
    queries, keys = comparison.queries, comparison.keys
    before, side = comparison.one, comparison.other
    tokens = side.trace.key_tokens(side.stream)
    # In the words of the second text, whose row is the answer.
    positions = {at: position for at, position in enumerate(keys.other) if position is not None}
    theirs = list(positions)
    said, own = tokens.names, before.trace.key_tokens(before.stream).names
    firsts = [said[at] if (first := keys.one[place]) is None else own[first] for place, at in positions.items()]
    now, was = comparison.other_weights[query][theirs], comparison.weights[query][theirs]
    looking = named(side.trace.query_tokens(side.stream), queries.other[query] or 0, "query")
    seen = named(tokens, keys.other[key] or 0, "key")
    asking = named(before.trace.query_tokens(before.stream), queries.one[query] or 0, "query")
    asked = named(before.trace.key_tokens(before.stream), keys.one[key] or 0, "key")
    numbers = (float(one[query, key]) for one in (comparison.weights, comparison.other_weights))
    first, second = map(weight_text, numbers)
    mixes = before.mixes or side.mixes
    ask = begun((*_sees(asking, asked, first, mixes=mixes), (f". And {called}?", "")))
    texts = [shortened(one.trace.provenance.text or "") for one in (before, side)]
    if texts[1] and texts[0] != texts[1]:
        ask = (*ask, (f"“{texts[1]}”", "small"))
    tell = begun(((f"{called}, ", ""), *_sees(looking, seen, second, mixes=mixes)))
    unit = "share of size" if mixes else "weight"
    at = theirs.index(key)
    # All positions have a counterpart of the same name, so that sums over patches are of the same patches.
    alike = theirs == [*range(len(tokens))] and len(keys.other) == len(theirs) and firsts == [*said]
    picture = patch_shares(tokens, now, at, before=was, unit=unit) if alike else None
    picture = picture or picture_of("bars", tokens, now, None, at, before=was, unit=unit, asked=firsts)
    slide = Slide(ask, tell, picture, _source(before, side, picture))
    place = queries.other[query]
    if place is None or len(theirs) != len(tokens):
        return slide
    return with_picture(slide, side.trace, side.stream, now, place, theirs.index(key))


def _sees(query: tuple[Part, ...], key: tuple[Part, ...], number: str, *, mixes: bool) -> tuple[Part, ...]:
    if mixes:
        return (*query, (" receives ", ""), *key, (", share of size ", ""), (number, "number"))
    return _looks(query, key, number)


def _looks(query: tuple[Part, ...], key: tuple[Part, ...], number: str, verb: str = "looks") -> tuple[Part, ...]:
    return (*query, (f" {verb} at ", ""), *key, (": ", ""), (number, "number"))


def _words(axis: AlignedAxis, tokens: Tokens) -> list[int]:
    said = set(tokens.counted)
    return [at for at in axis.both if axis.counted[at] and axis.other[at] in said]


def _source(one: Side, other: Side, picture: SlidePicture) -> str:
    model, where = one.trace.provenance.model, _where(one)
    same = one.trace.provenance.text == other.trace.provenance.text
    first = f"{model} · {where}" if same else source_of(one.trace, where, None)
    second = source_of(other.trace, _where(other), picture).removeprefix(f"{model} · ")
    return f"{first} → {second.removeprefix(f'{where} · ')}"


def _where(side: Side) -> str:
    return f"layer {side.layer}, head {side.head}"
