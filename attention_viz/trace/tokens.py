"""The tokens along an attention matrix's axes."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import islice
from math import isfinite

from attention_viz.errors import ShapeError, TraceError
from attention_viz.trace.kind import SLOTS, Unit, check_places, check_text
from attention_viz.trace.once import once
from attention_viz.trace.spelling import (
    SPACE,
    SPELLINGS,
    cut_characters,
    decode,
    join,
    numbered,
    occurrences,
    spell,
    table_in_html,
    with_characters,
    without_marks,
)
from attention_viz.trace.words import WordFinder, begins_with_blank, without_marks_above

__all__ = ["PADDING", "Region", "Tokens", "first_tokens"]

# The label of a position that only fills up a row.
PADDING = "[PAD]"

# So many tokens are named in a message, and shown in a notebook.
_MOST_NAMED, _MOST_ROWS = 30, 60

_UNKNOWN, _TEXT = SPELLINGS[:2]


@dataclass(frozen=True)
class Region:
    """The rectangle of an image that one position reads, in shares of its height and width, from 0 to 1.

    For audio, it is a stretch of time: `start` and `end`, with the edges 0 and 1.

    Attributes:
        picture: the image's number, from 0; in a video, the number of the first frame that it reads.
        top: its upper edge.
        left: its left edge.
        bottom: its lower edge.
        right: its right edge.
        thumbnail: whether the model reads it from a reduced copy of the whole image, beside tiles in full size.
        start: the time of the first frame that it reads, or the start of a stretch of audio, in seconds; None for an
            image.
        end: the time of the last frame that it reads, or the end of a stretch of audio, in seconds; None for an image.
    """

    picture: int
    top: float
    left: float
    bottom: float
    right: float
    thumbnail: bool = False
    start: float | None = None
    end: float | None = None

    def __post_init__(self) -> None:
        """Refuse a rectangle outside the image, or without an area."""
        inside = 0 <= self.top < self.bottom <= 1 and 0 <= self.left < self.right <= 1
        if self.picture < 0 or not inside:
            raise TraceError(f"a region needs an image's number and edges in order, from 0 to 1; got {astuple(self)}")

        times = [one for one in (self.start, self.end) if one is not None]
        if len(times) == 1 or not all(map(isfinite, times)) or times != sorted(times):
            raise TraceError(f"a region of a video needs two times, in order; got {self.start} and {self.end}")

    @property
    def area(self) -> float:
        """Its share of the image."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True, repr=False)
class Tokens:
    """A row of tokens from a tokenizer; every field has one entry per position.

    Attributes:
        labels: the tokenizer's own pieces, such as "##ing" or "Ġbank"; the ids as text without a tokenizer.
        ids: the numbers the model reads; None if there are none, as for an image's patches.
        words: each piece's word in the text, from 0; None if it belongs to none.
        special: True for pieces the tokenizer added, such as [CLS].
        padding: True for positions that only fill up the row.
        sentence: each piece's sentence, 0 or 1; None if it belongs to none.
        spelling: how the tokenizer writes each piece, one of `spelling.SPELLINGS`: "byte-level" for one such as
            "Ġbank".
        place: each token's place in the input: (row, column) of an image patch, from 0, or (seconds,) at the start of
            an audio frame; None for a text's words and other tokens without a place.
        regions: for a text with images, a video or audio, the rectangle or stretch that each placeholder reads, and
            each position of a tile, measured inside the model. None for words, and for placeholders that nothing moves,
            such as ends of lines.
        slots: the unit of each position that the model adds, such as "latent" or "object query"; else None.
    """

    labels: tuple[str, ...]
    ids: tuple[int, ...] | None = None
    words: tuple[int | None, ...] = field(default=())
    special: tuple[bool, ...] = field(default=())
    padding: tuple[bool, ...] = field(default=())
    sentence: tuple[int | None, ...] = field(default=())
    spelling: tuple[str, ...] = field(default=())
    place: tuple[tuple[float, ...] | None, ...] = field(default=())
    regions: tuple[Region | None, ...] = field(default=())
    slots: tuple[str | None, ...] = field(default=())

    def __post_init__(self) -> None:
        """Fill in missing rows and refuse unequal lengths."""
        blank: dict[str, tuple[object, ...]] = {
            "words": (None,) * len(self.labels),
            "special": (False,) * len(self.labels),
            "padding": (False,) * len(self.labels),
            "sentence": (None,) * len(self.labels),
            "spelling": (_UNKNOWN,) * len(self.labels),
            "place": (None,) * len(self.labels),
            "regions": (None,) * len(self.labels),
            "slots": (None,) * len(self.labels),
        }
        for name, default in blank.items():
            if not getattr(self, name):
                object.__setattr__(self, name, default)
        for name in (*(() if self.ids is None else ("ids",)), *blank):
            if len(getattr(self, name)) != len(self.labels):
                raise TraceError(
                    f"{name} needs {len(self.labels)} entries, one per token; got {len(getattr(self, name))}"
                )
        if unknown := set(self.spelling) - set(SPELLINGS):
            raise TraceError(f"unknown spelling {min(unknown)!r}; choose {', '.join(SPELLINGS)}")
        if unknown := {one for one in self.slots if one is not None} - set(SLOTS):
            raise TraceError(f"unknown slot {min(unknown)!r:.40}; choose {', '.join(SLOTS)}")
        check_places(self.place)

    def __len__(self) -> int:
        """Count the positions."""
        return len(self.labels)

    def __repr__(self) -> str:
        """Show the count and first readable tokens."""
        more = " …" if len(self) > _MOST_NAMED else ""
        return f"Tokens({len(self)}: {' '.join(self.written[:_MOST_NAMED])}{more})"

    def _repr_html_(self) -> str:
        ids = self.ids or (None,) * len(self)
        rows = zip(range(len(self)), self.labels, self.written, ids, self.words, strict=True)
        shown = [tuple("" if cell is None else str(cell) for cell in row) for row in islice(rows, _MOST_ROWS)]
        more = f"<p>… {len(self)} positions in all</p>" if len(self) > _MOST_ROWS else ""
        return table_in_html(["position", "label", "written", "id", "word"], shown) + more

    @property
    def numbers(self) -> tuple[int, ...]:
        """The ids.

        Raises:
            TraceError: the tokens have none.
        """
        if self.ids is None:
            raise TraceError(f"{self.labels[0]}, … have no ids, because they are {self.units[0].tokens}, not words")
        return self.ids

    @once
    def placed(self) -> bool:
        """Return whether any token has a place in an image or audio."""
        return any(one is not None for one in self.place)

    @once
    def units(self) -> tuple[Unit, ...]:
        """Each token's unit; special tokens count as words."""
        pairs = zip(self.slots, self.place, strict=True)
        return tuple(Unit.of(place) if slot is None else Unit(slot) for slot, place in pairs)

    @once
    def unit(self) -> Unit:
        """Patches or frames if there are any, else words; slots if there is nothing else."""
        if all(self.slots) and self.slots:
            return self.units[0]
        return Unit.of(next((one for one in self.place if one is not None), None))

    @once
    def patches(self) -> Mapping[int, tuple[int, int]]:
        """Row and column of each image patch, from 0, by position."""
        placed = enumerate(self.place)
        return {at: (int(one[0]), int(one[1])) for at, one in placed if one is not None and Unit.of(one) is Unit.PATCH}

    @once
    def frames(self) -> Mapping[int, float]:
        """The start of each audio frame in seconds, by position."""
        placed = enumerate(self.place)
        return {at: one[0] for at, one in placed if one is not None and Unit.of(one) is Unit.FRAME}

    def placed_at(self, position: int) -> str | None:
        """Name a token by its place: "patch 3, 5", row and column from 0, "1.20 s" or "latent 3"; None for a word."""
        if self.slots[position] is not None:
            return self.labels[position]
        place = self.place[position]
        return None if place is None else self.units[position].named(place)

    @once
    def names(self) -> tuple[str, ...]:
        """Each token in a sentence or list: its place if it has one, else as `numbered` without the mark of a space."""
        bare = (text if mark == SPACE else mark + text for mark, text in self._parts)
        return tuple(self.placed_at(at) or numbered(name, self.occurrences[at]) for at, name in enumerate(bare))

    @once
    def numbered(self) -> tuple[str, ...]:
        """Each token as `written`, repeated ones with their occurrence ("·the₂"), bytes after their whole character."""
        return tuple(map(numbered, map("".join, self._parts), self.occurrences))

    @once
    def occurrences(self) -> tuple[int, ...]:
        """Which of several equal tokens each is, in any case, from 1; 0 for a token that comes once."""
        return occurrences(list(map("".join, self._parts)))

    @once
    def _parts(self) -> list[tuple[str, str]]:
        return with_characters(self._spelled, cut_characters(self.labels, self.spelling))

    @once
    def _spelled(self) -> list[tuple[str, str]]:
        every = zip(self.labels, self.spelling, self.place, self.slots, strict=True)
        return [
            ("", Unit(slot).shortened(label)) if slot else ("", label) if place else spell(label, how)
            for label, how, place, slot in every
        ]

    def require(self, position: int) -> None:
        """Raise an error for a position outside the row, counted from 0.

        Raises:
            ShapeError: the position is missing.
        """
        if not 0 <= position < len(self):
            raise ShapeError(f"no position {position}; the text has positions 0 to {len(self) - 1}")

    def resolve(self, position: int) -> int:
        """Return a position from 0; a negative one counts from the end.

        Raises:
            ShapeError: the position is missing.
        """
        count = len(self)
        self.require(position + count if -count <= position < 0 else position)
        return position % count

    @once
    def counted(self) -> tuple[int, ...]:
        """The positions of the text: neither special nor padding."""
        marks = zip(self.special, self.padding, strict=True)
        return tuple(position for position, (special, padding) in enumerate(marks) if not (special or padding))

    @once
    def pieces(self) -> tuple[tuple[int, ...], ...]:
        """Return the positions of each word's subword tokens, in order; a token of no word is alone.

        No word crosses a space, whatever `words` has: files of earlier versions have the tokenizer's own words.
        """
        groups: list[list[int]] = []
        last: tuple[int | None, int | None] = (None, None)
        for position, here in enumerate(zip(self.sentence, self.words, strict=True)):
            goes_on = here[1] is not None and here[1] == last[1] and (here[0] == last[0] or None in (here[0], last[0]))
            if goes_on and not begins_with_blank(self.labels[position], self.spelling[position]):
                groups[-1].append(position)
            else:
                groups.append([position])
            last = here
        return tuple(map(tuple, groups))

    def padded_after(self, real: int) -> "Tokens":
        """Return these tokens with all after the first `real` marked as padding."""
        filling = len(self) - real
        return Tokens(
            (*self.labels[:real], *[PADDING] * filling),
            self.ids,
            words=(*self.words[:real], *[None] * filling),
            special=(*self.special[:real], *[True] * filling),
            padding=(*[False] * real, *[True] * filling),
            spelling=(*self.spelling[:real], *[_TEXT] * filling),
            place=(*self.place[:real], *[None] * filling),
            regions=(*self.regions[:real], *[None] * filling),
            slots=(*self.slots[:real], *[None] * filling),
        )

    @once
    def written(self) -> tuple[str, ...]:
        """Each token in readable form, such as "·bank" for "Ġbank" and "‿ing" for "##ing"; nothing is invisible.

        Labels of patches and frames stay as they are: the space in "0.74 s" is a space.
        """
        return tuple(map("".join, self._spelled))

    @once
    def texts(self) -> tuple[str, ...]:
        """Each token's text without the space before it, for searching."""
        return tuple(without_marks(label, how) for label, how in zip(self.labels, self.spelling, strict=True))

    def text_of(self, positions: Sequence[int]) -> str:
        """Return a word's text without the space before it.

        Args:
            positions: its pieces', as in `pieces`.
        """
        return without_marks(*self.joined(positions))

    def joined(self, positions: Sequence[int]) -> tuple[str, str]:
        """Return a word's subword tokens as one token, and its spelling.

        Args:
            positions: its tokens' positions, as in `pieces`.
        """
        labels, kinds = [self.labels[one] for one in positions], [self.spelling[one] for one in positions]
        if len(set(kinds)) == 1:
            return (labels[0] if len(labels) == 1 else join(labels, kinds[0])), kinds[0]
        return "".join(decode(label, how) for label, how in zip(labels, kinds, strict=True)), _TEXT

    def write(self, label: str) -> str:
        """Return another piece of the same tokenizer, such as a predicted one, in readable form."""
        found = next((how for how in self.spelling if how != _TEXT), _UNKNOWN)
        return "".join(spell(label, found))

    def places(self, word: str) -> list[tuple[int, ...]]:
        """Return the positions of each occurrence of a word, in order, one per piece.

        It finds a word as it is in the text, however the tokenizer splits it: "don't", "3.14", "e-mail", an emoji of
        several bytes. It also finds several words, as in "New York".

        Args:
            word: as the tokenizer writes it ("Ġbank"), as figures show it ("·bank"), or as text ("bank"). Case is
                ignored; accents aren't, unless the tokenizer drops them.

        Raises:
            TraceError: the word isn't there.
            UnusableText: it isn't text.
        """
        check_text(word, "a word")
        wanted = word.strip().casefold()
        names = enumerate(zip(self.written, self.texts, strict=True))
        found = {(position,) for position, said in names if wanted in map(str.casefold, said)}
        for pieces in self._finder.find(word) or self._found_without_marks(word):
            found = {one for one in found if one[0] not in pieces} | {pieces}
        found = found or {(position,) for position, label in enumerate(self.labels) if label.casefold() == wanted}
        found = {one for one in found if not any(self.padding[position] for position in one)}
        if not wanted or not found:
            named = ", ".join(self.written[:_MOST_NAMED]) + (" …" if len(self) > _MOST_NAMED else "")
            raise TraceError(f"the word “{word}” isn't in this text; its tokens are {named}")
        return sorted(found)

    @once
    def _finder(self) -> WordFinder:
        return WordFinder.of(self.labels, self.spelling, self.words)

    def _found_without_marks(self, word: str) -> list[tuple[int, ...]]:
        """Find a word whose accents the tokenizer drops, as BERT's does."""
        bare = without_marks_above(word)
        kept = any(without_marks_above(text) != text for text in self.texts) or "wordpiece" not in self.spelling
        return [] if kept or bare == word else self._finder.find(bare)

    def index(self, word: str) -> int:
        """Return the position of a word that occurs once; its first piece's if it has several.

        Args:
            word: as in `places`.

        Raises:
            TraceError: the word isn't there, or occurs more than once; the message lists its positions.
            UnusableText: it isn't text.
        """
        found = [pieces[0] for pieces in self.places(word)]
        if len(found) > 1:
            phrase = ", ".join(map(str, found))
            raise TraceError(f"the word “{word}” occurs at positions {phrase}; choose one of them")
        return found[0]

    @classmethod
    def of_labels(cls, labels: Sequence[str]) -> "Tokens":
        """Make tokens from labels alone: each is a word spelled as it is, and equal ones share an id."""
        said = tuple(labels)
        wrong = [label for label in said if not isinstance(label, str)]  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        if isinstance(labels, str) or wrong:
            got = "one str" if isinstance(labels, str) else type(wrong[0]).__name__
            raise TraceError(f"labels must be one str per token, in a list or tuple; got {got}")
        first = {label: place for place, label in reversed(list(enumerate(said)))}
        ids = tuple(first[label] for label in said)
        return cls(said, ids, words=tuple(range(len(said))), spelling=(_TEXT,) * len(said))

    @classmethod
    def of_ids(cls, ids: Sequence[int], padding: Sequence[bool] = ()) -> "Tokens":
        """Make tokens from ids alone."""
        return cls(tuple(str(i) for i in ids), tuple(ids), padding=tuple(padding))


def first_tokens(tokens: Tokens, count: int) -> Tokens:
    """Return the first tokens of a text."""
    found = {entry.name: getattr(tokens, entry.name) for entry in fields(tokens) if entry.init}
    return replace(tokens, **{name: value[:count] for name, value in found.items() if isinstance(value, tuple)})
