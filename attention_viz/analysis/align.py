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
