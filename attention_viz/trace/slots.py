"""The positions that a model adds to its input: latents, object queries, virtual tokens, spans."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields

from attention_viz.trace.kind import CROSSING_STREAMS, Unit
from attention_viz.trace.tokens import Tokens


def slot_tokens(unit: Unit, count: int) -> Tokens:
    """Return `count` slots, numbered from 0."""
    return _named(unit, map(str, range(count)))


def span_tokens(spans: Sequence[tuple[int, int]]) -> Tokens:
    """Return positions made of several tokens, named by the first and the last: "span 4–7"."""
    return _named(Unit.SPAN, (f"{first}–{last}" if first < last else f"{first}" for first, last in spans))


def span_at(tokens: Tokens, position: int) -> range | None:
    """Return the positions of the tokens that a position is made of; None if it isn't a span."""
    if tokens.slots[position] != Unit.SPAN.value:
        return None
    first, _, last = tokens.labels[position].removeprefix(f"{Unit.SPAN} ").partition("–")
    return range(int(first), int(last or first) + 1) if first.isdigit() and (last or first).isdigit() else None


def block_tokens(per: int, count: int) -> Tokens:
    """Return a slot for each whole block of `per` tokens among `count`, named by its first and last position."""
    return _named(Unit.BLOCK, (f"{start}–{start + per - 1}" for start in range(0, count - per + 1, per)))


def prediction_tokens(each: int, count: int) -> Tokens:
    """Return a slot for each of the next `each` tokens that a model predicts at each of `count` positions."""
    return _named(Unit.PREDICTION, (f"{ahead + 1} at {at}" for ahead in range(each) for at in range(count)))


def _named(unit: Unit, names: Iterable[str]) -> Tokens:
    """Return slots of a unit, each named by the unit and its own part."""
    labels = tuple(f"{unit} {name}" for name in names)
    return Tokens(labels, None, spelling=("text",) * len(labels), slots=(unit.value,) * len(labels))


def joined_tokens(*parts: Tokens) -> Tokens:
    """Return the tokens of several parts, one after the other; ids only if all have some."""
    parts = tuple(part for part in parts if len(part))
    names = [one.name for one in fields(Tokens) if one.name != "ids"]
    ids = [part.ids for part in parts]
    return Tokens(
        ids=None if None in ids else tuple(number for one in ids for number in one or ()),
        **{name: tuple(one for part in parts for one in getattr(part, name)) for name in names},
    )


def are_alike(stream: str, queries: Tokens, keys: Tokens) -> bool:
    """Return whether a stream's queries are its keys, position by position; only spans may come after them."""
    own = len(keys) - keys.slots.count(Unit.SPAN.value)
    return stream not in CROSSING_STREAMS and queries.slots.count(None) - len(queries) == keys.slots.count(None) - own


def target_stream(streams: Collection[str]) -> str:
    """Return the stream whose rows are the text that an encoder–decoder writes."""
    return "cross" if "cross" in streams else "decoder"


def has_target(streams: Collection[str]) -> bool:
    """Return whether these streams are of a model that reads one thing and writes a text."""
    found = {*streams}
    # A text's own attention to an image or audio makes it no second text.
    beside = {"picture", "sound"} & found and "encoder" not in found
    # Some decoders attend to their own text and to the encoder's in one softmax.
    return found in ({"cross"}, {"encoder", "decoder"}) or ({"decoder", "cross"} <= found and not beside)
