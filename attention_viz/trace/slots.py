"""The positions that a model adds to its input: latents, object queries, virtual tokens."""

from collections.abc import Collection
from dataclasses import fields

from attention_viz.trace.kind import CROSSING_STREAMS, Unit
from attention_viz.trace.tokens import Tokens


def slot_tokens(unit: Unit, count: int) -> Tokens:
    """Return `count` slots, numbered from 0."""
    labels = tuple(f"{unit} {number}" for number in range(count))
    return Tokens(labels, None, spelling=("text",) * count, slots=(unit.value,) * count)


def block_tokens(per: int, count: int) -> Tokens:
    """Return a slot for each whole block of `per` tokens among `count`, named by its first and last position."""
    labels = tuple(f"{Unit.BLOCK} {start}–{start + per - 1}" for start in range(0, count - per + 1, per))
    return Tokens(labels, None, spelling=("text",) * len(labels), slots=(Unit.BLOCK.value,) * len(labels))


def prediction_tokens(each: int, count: int) -> Tokens:
    """Return a slot for each of the next `each` tokens that a model predicts at each of `count` positions."""
    labels = tuple(f"{Unit.PREDICTION} {ahead + 1} at {at}" for ahead in range(each) for at in range(count))
    return Tokens(labels, None, spelling=("text",) * len(labels), slots=(Unit.PREDICTION.value,) * len(labels))


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
    """Return whether a stream's queries are its keys, position by position."""
    return stream not in CROSSING_STREAMS and queries.slots.count(None) - len(queries) == keys.slots.count(None) - len(
        keys
    )


def has_target(streams: Collection[str]) -> bool:
    """Return whether these streams are of a model that reads one thing and writes a text."""
    found = {*streams}
    # A text's own attention to an image or audio makes it no second text.
    beside = {"picture", "sound"} & found and "encoder" not in found
    return found == {"cross"} or ({"decoder", "cross"} <= found and not beside)
