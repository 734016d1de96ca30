"""Words of a row that fit on a slide."""

import unicodedata
from collections.abc import Collection, Sequence

from jaxtyping import Float
from torch import Tensor

from attention_viz.trace.tokens import Tokens

__all__ = ["around", "heaviest", "short_token"]

# Letters that fit on a line across a room, in which each word has some room around it, and a short one the least that
# a box takes; and bars below each other.
_LETTERS, _AROUND, _LEAST = 62, 2, 4
_BARS = 9
_LONGEST_TOKEN = 16


def around(tokens: Tokens, places: Sequence[int]) -> tuple[int, ...]:
    """Return positions that fit on a line around some words."""
    kept = set(places)
    said = tokens.said
    room = _LETTERS - sum(_width(said[place]) for place in kept)
    for distance in range(1, len(tokens)):
        near = [place + side for place in places for side in (-distance, distance)]
        near = [place for place in dict.fromkeys(near) if 0 <= place < len(tokens) and place not in kept]
        for place in near:
            room -= _width(said[place])
            if room < 0:
                return tuple(sorted(kept))
            kept.add(place)
    return tuple(sorted(kept))


def heaviest(values: Float[Tensor, " key"], places: Collection[int]) -> tuple[int, ...]:
    """Return positions that fit in a column: some, and the heaviest; NaN last."""
    ranked = values.nan_to_num(-1e30, posinf=-1e30, neginf=-1e30).abs().argsort(descending=True, stable=True).tolist()
    wanted = list(dict.fromkeys([*places, *ranked]))
    # A sign for one word that is left out takes as much room as the word.
    return tuple(sorted(wanted if len(values) == _BARS + 1 else wanted[: max(_BARS, len(set(places)))]))


def short_token(text: str) -> str:
    """Shorten a token to fit beside a bar."""
    return text if len(text) <= _LONGEST_TOKEN else f"{text[: _LONGEST_TOKEN - 1]}…"


def _width(text: str) -> int:
    letters = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in short_token(text))
    return max(letters + _AROUND, _LEAST)
