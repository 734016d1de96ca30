"""Alignment of two texts' tokens along one axis."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, get_args

from attention_viz.errors import ShapeError
from attention_viz.trace.tokens import Tokens

Alignment = Literal["position", "token"]
ALIGNMENTS: tuple[str, ...] = get_args(Alignment)

_CONTINUES = "##"


@dataclass(frozen=True)
class AlignedAxis:
    """Two texts' tokens along one axis.

    Attributes:
        labels: the first text's token, else the second's.
        one: position in the first text, or None.
        counted: True for places that both have and neither pads.
        written: readable `labels`, repeated ones numbered.
        other_labels: the second text's token, else the first's.
        placed: place in a picture or a sound, "patch 3, 5", or None.
    """

    labels: tuple[str, ...]
    one: tuple[int | None, ...]
    other: tuple[int | None, ...]
    counted: tuple[bool, ...]
    written: tuple[str, ...] = ()
    substituted: tuple[int, ...] = ()
    other_labels: tuple[str, ...] = ()
    other_written: tuple[str, ...] = ()
    placed: tuple[str | None, ...] = ()
    other_placed: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        """Fill in missing `written` from labels, and the second text's from the first's."""
        object.__setattr__(self, "written", self.written or self.labels)
        object.__setattr__(self, "other_labels", self.other_labels or self.labels)
        object.__setattr__(self, "other_written", self.other_written or self.written)
        object.__setattr__(self, "placed", self.placed or (None,) * len(self.labels))
        object.__setattr__(self, "other_placed", self.other_placed or self.placed)

    def __len__(self) -> int:
        """Count the places."""
        return len(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Return each place's readable token, "river→city" if substituted."""
        pairs = zip(self.written, self.other_written, strict=True)
        return tuple(f"{one}→{other.lstrip('·')}" if one != other else one for one, other in pairs)

    @property
    def both(self) -> tuple[int, ...]:
        """Return the places where both texts have a token."""
        places = enumerate(zip(self.one, self.other, strict=True))
        return tuple(place for place, pair in places if None not in pair)

    @property
    def removed(self) -> tuple[int, ...]:
        """Return places only the first text has."""
        return tuple(place for place, position in enumerate(self.other) if position is None)

    @property
    def inserted(self) -> tuple[int, ...]:
        """Return places only the second text has."""
        return tuple(place for place, position in enumerate(self.one) if position is None)

    def partner(self, place: int) -> int | None:
        """Return the place of the other text's token there, or None.

        Substituted tokens pair up in order.
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
        """Return the place of a first-text position."""
        return self.one.index(position)


def align(one: Tokens, other: Tokens, by: Alignment = "position") -> AlignedAxis:
    """Align two texts' tokens along one axis, in order.

    Tokens match if their labels do (case counts; markers such as "Ġ" or "##" only show a word's beginning), and both or
    neither begin a word, are special, or are padding. Between matches, equally many tokens substitute each other,
    unless special or padding meets ordinary. Others are unpaired, the first text's first.

    Source: Ratcliff and Metzener 1988, as in Python's difflib: longest common run, then left and right.

    Args:
        by: "position" as above; "token" pairs only equal tokens.
    """
    if by not in ALIGNMENTS:
        raise ShapeError(f"unknown alignment {by!r}; choose {', '.join(ALIGNMENTS)}")
    signs = [_signs(tokens) for tokens in (one, other)]
    pairs: list[tuple[int | None, int | None]] = []
    substituted: list[int] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, *signs, autojunk=False).get_opcodes():
        mine, theirs = range(start, end), range(other_start, other_end)
        if kind == "replace" and by == "position" and _replace_each_other(one, other, mine, theirs):
            substituted += range(len(pairs), len(pairs) + len(mine))
            kind = "equal"
        if kind == "equal":
            pairs += zip(mine, theirs, strict=True)
        else:
            pairs += [(place, None) for place in mine]
            pairs += [(None, place) for place in theirs]
    # Of tokens that count as the same, such as "bank" and "▁bank", the first text's spelling stands for both.
    apart = set(substituted)
    seconds = [j if i is None or place in apart else None for place, (i, j) in enumerate(pairs)]
    # Of each place who tells its token, and where: of the first text's tokens, and of the second's.
    tellers = [(one, i) if i is not None else (other, j or 0) for i, j in pairs]
    others = [(other, j) if j is not None else (one, i or 0) for (i, _), j in zip(pairs, seconds, strict=True)]
    return AlignedAxis(
        labels=tuple(tokens.labels[at] for tokens, at in tellers),
        one=tuple(i for i, _ in pairs),
        other=tuple(j for _, j in pairs),
        counted=tuple(i is not None and j is not None and not (one.padding[i] or other.padding[j]) for i, j in pairs),
        written=tuple(tokens.numbered[at] for tokens, at in tellers),
        substituted=tuple(substituted),
        other_labels=tuple(tokens.labels[at] for tokens, at in others),
        other_written=tuple(tokens.numbered[at] for tokens, at in others),
        placed=tuple(tokens.placed_at(at) for tokens, at in tellers),
        other_placed=tuple(tokens.placed_at(at) for tokens, at in others),
    )


def _replace_each_other(one: Tokens, other: Tokens, mine: range, theirs: range) -> bool:
    kinds = [[(text.special[at], text.padding[at]) for at in at_all] for text, at_all in ((one, mine), (other, theirs))]
    return kinds[0] == kinds[1]


def _signs(tokens: Tokens) -> list[tuple[str, bool, bool, bool]]:
    signs = []
    last: tuple[int | None, int | None] = (None, None)
    for place, label in enumerate(tokens.labels):
        word = tokens.sentence[place], tokens.words[place]
        goes_on = label.startswith(_CONTINUES) if word[1] is None else word == last
        signs.append((tokens.texts[place], goes_on, tokens.special[place], tokens.padding[place]))
        last = word
    return signs
