"""The tokens of two texts along one axis: which of them are the same, and which only one text has."""

from dataclasses import dataclass
from difflib import SequenceMatcher

from attention_viz.trace.tokens import Tokens

__all__ = ["Axis", "align"]

_CONTINUES = "##"


@dataclass(frozen=True)
class Axis:
    """The tokens of two texts along one axis: each place is a token that both have, or that only one of them has.

    Attributes:
        labels: of each place its token; where both have it, as the first text's tokenizer writes it.
        one: of each place its position in the first text, None where the first lacks it.
        other: the same of the second.
        counted: True for the places that both have and that aren't padding in either: what is averaged over.
        written: of each place its token as people read it.
    """

    labels: tuple[str, ...]
    one: tuple[int | None, ...]
    other: tuple[int | None, ...]
    counted: tuple[bool, ...]
    written: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Write tokens as their labels where nothing else is said."""
        object.__setattr__(self, "written", self.written or self.labels)

    def __len__(self) -> int:
        """How many places there are."""
        return len(self.labels)

    @property
    def both(self) -> tuple[int, ...]:
        """The places of tokens that both texts have."""
        places = enumerate(zip(self.one, self.other, strict=True))
        return tuple(place for place, pair in places if None not in pair)

    @property
    def removed(self) -> tuple[int, ...]:
        """The places of tokens that only the first text has."""
        return tuple(place for place, position in enumerate(self.other) if position is None)

    @property
    def inserted(self) -> tuple[int, ...]:
        """The places of tokens that only the second text has: inserted there."""
        return tuple(place for place, position in enumerate(self.one) if position is None)

    def partner(self, place: int) -> int | None:
        """The place of what the other text has there instead: of a token that both have, its own.

        Of tokens that were replaced the first of one text belongs to the first of the other, and so on; None where
        the other text has nothing there.

        Args:
            place: on the axis, from 0.
        """
        if self.one[place] is not None and self.other[place] is not None:
            return place
        # Of a replacement, all of the first text's tokens stand before the second's.
        stretch = [place]
        while stretch[0] and None in self._pair(stretch[0] - 1):
            stretch.insert(0, stretch[0] - 1)
        while stretch[-1] + 1 < len(self) and None in self._pair(stretch[-1] + 1):
            stretch.append(stretch[-1] + 1)
        gone = [at for at in stretch if self.other[at] is None]
        added = [at for at in stretch if self.one[at] is None]
        mine, theirs = (gone, added) if place in gone else (added, gone)
        which = mine.index(place)
        return theirs[which] if which < len(theirs) else None

    def _pair(self, place: int) -> tuple[int | None, int | None]:
        return self.one[place], self.other[place]

    def place_of(self, position: int) -> int:
        """The place of one of the first text's positions."""
        return self.one.index(position)


def align(one: Tokens, other: Tokens) -> Axis:
    """Put the tokens of two texts along one axis, in the order of both, as two versions of a text are compared.

    Two tokens are the same where their labels are, upper and lower case told apart, both begin a word or both go on
    with one, and both or neither are special or padding. What a tokenizer writes around a piece, such as "Ġ" or "##",
    says only whether it begins a word. Of tokens that were replaced, the first text's come before the second's.

    Source: the alignment is that of Ratcliff and Metzener 1988, as Python's difflib has it: the longest run of tokens
    in common, then the same to its left and to its right.
    """
    signs = [_signs(tokens) for tokens in (one, other)]
    pairs: list[tuple[int | None, int | None]] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, *signs, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs += zip(range(start, end), range(other_start, other_end), strict=True)
        else:
            pairs += [(place, None) for place in range(start, end)]
            pairs += [(None, place) for place in range(other_start, other_end)]
    return Axis(
        tuple(one.labels[i] if i is not None else other.labels[j or 0] for i, j in pairs),
        tuple(i for i, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(i is not None and j is not None and not (one.padding[i] or other.padding[j]) for i, j in pairs),
        tuple(one.written[i] if i is not None else other.written[j or 0] for i, j in pairs),
    )


def _signs(tokens: Tokens) -> list[tuple[str, bool, bool, bool]]:
    """What each token is compared by when two texts are aligned."""
    signs = []
    last: tuple[int | None, int | None] = (None, None)
    for place, label in enumerate(tokens.labels):
        word = tokens.sentence[place], tokens.words[place]
        goes_on = label.startswith(_CONTINUES) if word[1] is None else word == last
        signs.append((tokens.texts[place], goes_on, tokens.special[place], tokens.padding[place]))
        last = word
    return signs
