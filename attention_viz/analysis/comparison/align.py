"""Two texts' tokens on common axes, and the rows that can't differ."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, get_args

import torch
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.trace.derived import beginning
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

__all__ = ["ALIGNMENTS", "AlignedAxis", "Alignment", "align", "shared_rows"]

Alignment = Literal["position", "token"]
ALIGNMENTS: tuple[str, ...] = get_args(Alignment)

_CONTINUES = "##"


@dataclass(frozen=True)
class AlignedAxis:
    """Two texts' tokens along one axis: labels and places of the first text, else of the second."""

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
        """How many places there are."""
        return len(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Return each place's readable token, "river→city" if substituted."""
        pairs = zip(self.written, self.other_written, strict=True)
        return tuple(f"{one}→{other.lstrip('·')}" if one != other else one for one, other in pairs)

    @property
    def both(self) -> tuple[int, ...]:
        """Return places at which both texts have a token."""
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
        """Return the place of the other text's token there, or None; substituted ones pair up in order."""
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

    Tokens match if their labels do (case counts; markers such as "Ġ" or "##" only show a word's beginning), and both
    or neither begin a word, are special, or are padding. Between matches, equal numbers substitute each other, unless
    special or padding meets ordinary. Others stand alone, the first text's first.

    Source: Ratcliff and Metzener 1988, as in Python's difflib: longest common run, then left and right.

    Args:
        by: "position" as above; "token" pairs only equal tokens.
    """
    if by not in ALIGNMENTS:
        raise ShapeError(f"an alignment by {by!r} was asked for; there are {', '.join(ALIGNMENTS)}")
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
        written=tuple(tokens.written[at] for tokens, at in tellers),
        substituted=tuple(substituted),
        other_labels=tuple(tokens.labels[at] for tokens, at in others),
        other_written=tuple(tokens.written[at] for tokens, at in others),
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


# Rows on which both runs are looked at, spread over the beginning, and how far they may be apart by rounding alone.
_ROWS, _ROUNDING = 16, 1e-4


def shared_rows(one: Trace, other: Trace, queries: AlignedAxis) -> tuple[int, ...]:
    """Return rows that can't differ between two runs of a decoder: those before the first differing token."""
    rows = _beginning(one, other)
    pairs = enumerate(zip(queries.one, queries.other, strict=True))
    return tuple(place for place, (mine, theirs) in pairs if mine is not None and mine == theirs and mine < rows)


def _beginning(one: Trace, other: Trace) -> int:
    origins = [trace.provenance for trace in (one, other)]
    made = [(at.model, at.revision, at.sha256, at.dtype) for at in origins]
    as_it_ran = all(at.reading == "raw" and not at.edits for at in origins)
    if made[0] != made[1] or not as_it_ran or any(at.streams != ("decoder",) for at in (one, other)):
        return 0
    tokens = one.query_tokens("decoder"), other.query_tokens("decoder")
    rows = _alike(*tokens)
    if not rows or rows == max(map(len, tokens)):
        return 0
    try:
        cut = beginning(one, rows), beginning(other, rows)
    except TraceError:  # a token looks ahead
        return 0
    return rows if _equal(*cut, rows) else 0


def _alike(one: Tokens, other: Tokens) -> int:
    parts = [zip(text.numbers, text.labels, text.special, text.padding, strict=True) for text in (one, other)]
    alike = 0
    for mine, theirs in zip(*parts, strict=False):
        if mine != theirs:
            break
        alike += 1
    return alike


def _equal(one: Trace, other: Trace, rows: int) -> bool:
    """Unknown without a layer that both keep."""
    kept = sorted(set(one.layer_numbers("decoder")) & set(other.layer_numbers("decoder")))
    if not kept:
        return False
    chosen = sorted({round(at) for at in torch.linspace(0, rows - 1, min(rows, _ROWS)).tolist()})

    def weights(trace: Trace) -> Tensor:
        return trace.attention(kept[-1], "decoder").rows(chosen).weights.detach().cpu().double()

    mine, theirs = weights(one), weights(other)
    return mine.shape == theirs.shape and torch.allclose(mine, theirs, rtol=0.0, atol=_ROUNDING, equal_nan=True)
