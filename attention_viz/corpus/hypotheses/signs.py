"""The signs of a hypothesis."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from attention_viz.errors import HypothesisError

_SIGNS = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]+)|(?P<number>\d+)|(?P<text>\"[^\"]*\"|'[^']*')|(?P<sign>[=!<>]=|[<>().,+-]))"
)
# What arrays of positions can be held against and added to.
_DIGITS = 9


class Sign(NamedTuple):
    """A hypothesis' token: "name", "number", "text" in quotes, "sign" or "end"."""

    kind: str
    said: str
    place: int


def signs_of(said: str) -> Iterator[Sign]:
    """Split a hypothesis into signs, the end last."""
    place = 0
    while said[place:].strip():
        found = _SIGNS.match(said, place)
        if found is None:
            place += len(said[place:]) - len(said[place:].lstrip())
            open_quote = said[place] in "\"'"
            what = "a text without its closing quote" if open_quote else f"the unknown sign {said[place]!r}"
            raise HypothesisError(f"found {what}", said, place)
        kind = str(found.lastgroup)
        if kind == "number" and len(found[kind]) > _DIGITS:
            phrase = f"found a number of {len(found[kind]):,} digits; use at most {_DIGITS}"
            raise HypothesisError(phrase, said, found.start(kind))
        yield Sign(kind, found[kind], found.start(kind))
        place = found.end()
    yield Sign("end", "", len(said))
