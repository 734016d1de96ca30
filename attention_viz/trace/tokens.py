"""The tokens that stand along the axes of an attention matrix, the words of a text, and how much of it fits there."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from attention_viz.errors import ShapeError, TraceError, UnusableText
from attention_viz.trace.once import once
from attention_viz.trace.spelling import SPELLINGS, join, spell, without_marks

__all__ = ["PADDING", "Fit", "Tokens", "check_text", "fit_text", "split_words"]

# What stands at a position that only fills up a row.
PADDING = "[PAD]"

_UNKNOWN, _TEXT = SPELLINGS[:2]


@dataclass(frozen=True)
class Tokens:
    """A row of tokens as the tokenizer made them, one entry a position in every field.

    Attributes:
        labels: the tokenizer's own pieces, such as "##ing" or "Ġbank"; the ids as text where there is no tokenizer.
        ids: the numbers the model reads.
        words: which word of the text each piece belongs to, from 0; None for what belongs to none.
        special: True for pieces the tokenizer added by itself, such as [CLS].
        padding: True for positions that only fill up the row.
        sentence: which sentence of the text each piece belongs to, 0 or 1; None for what belongs to none.
        spelling: how the tokenizer writes each piece, one of `spelling.SPELLINGS`: "byte-level" of one such as "Ġbank".
    """

    labels: tuple[str, ...]
    ids: tuple[int, ...]
    words: tuple[int | None, ...] = field(default=())
    special: tuple[bool, ...] = field(default=())
    padding: tuple[bool, ...] = field(default=())
    sentence: tuple[int | None, ...] = field(default=())
    spelling: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Fill in what wasn't given (no words, nothing special …) and refuse rows of different length."""
        blank: dict[str, tuple[object, ...]] = {
            "words": (None,) * len(self.labels),
            "special": (False,) * len(self.labels),
            "padding": (False,) * len(self.labels),
            "sentence": (None,) * len(self.labels),
            "spelling": (_UNKNOWN,) * len(self.labels),
        }
        for name, default in blank.items():
            if not getattr(self, name):
                object.__setattr__(self, name, default)
        for name in ("ids", *blank):
            if len(getattr(self, name)) != len(self.labels):
                raise TraceError(f"{len(self.labels)} token labels came with {len(getattr(self, name))} {name}")
        if unknown := set(self.spelling) - set(SPELLINGS):
            raise TraceError(f"the spelling {min(unknown)!r} came with tokens; allowed are {', '.join(SPELLINGS)}")

    def __len__(self) -> int:
        """How many positions there are."""
        return len(self.labels)

    def require(self, position: int) -> None:
        """Make sure that a position, from 0, is one of these.

        Raises:
            ShapeError: it isn't.
        """
        if not 0 <= position < len(self):
            raise ShapeError(f"position {position} was asked for; the text has positions 0 to {len(self) - 1}")

    def resolve(self, position: int) -> int:
        """A position from 0, of one that is given so or, below 0, counted from the end.

        Raises:
            ShapeError: it is none of these.
        """
        count = len(self)
        self.require(position + count if -count <= position < 0 else position)
        return position % count

    @property
    def counted(self) -> tuple[int, ...]:
        """The positions that stand for something in the text: neither special nor padding."""
        marks = zip(self.special, self.padding, strict=True)
        return tuple(position for position, (special, padding) in enumerate(marks) if not (special or padding))

    @property
    def pieces(self) -> tuple[tuple[int, ...], ...]:
        """The positions of each word's pieces, in order; what belongs to no word is alone."""
        groups: list[list[int]] = []
        last: tuple[int | None, int | None] = (None, None)
        for position, here in enumerate(zip(self.sentence, self.words, strict=True)):
            if here[1] is not None and here == last:
                groups[-1].append(position)
            else:
                groups.append([position])
            last = here
        return tuple(map(tuple, groups))

    def padded_after(self, real: int) -> "Tokens":
        """These tokens, with all after the first `real` ones marked as padding."""
        filling = len(self) - real
        return Tokens(
            (*self.labels[:real], *[PADDING] * filling),
            self.ids,
            words=(*self.words[:real], *[None] * filling),
            special=(*self.special[:real], *[True] * filling),
            padding=(*[False] * real, *[True] * filling),
            spelling=(*self.spelling[:real], *[_TEXT] * filling),
        )

    @once
    def written(self) -> tuple[str, ...]:
        """Each token as people read it, such as "·bank" for "Ġbank" and "‿ing" for "##ing"; nothing is invisible."""
        return tuple("".join(spell(label, how)) for label, how in zip(self.labels, self.spelling, strict=True))

    @once
    def texts(self) -> tuple[str, ...]:
        """The text of each token, without the space before it: what a search looks for."""
        return tuple(without_marks(label, how) for label, how in zip(self.labels, self.spelling, strict=True))

    def text_of(self, positions: Sequence[int]) -> str:
        """The text of a word, without the space before it.

        Args:
            positions: of its pieces, as in `pieces`.
        """
        how = self.spelling[positions[0]]
        return without_marks(join([self.labels[position] for position in positions], how), how)

    def write(self, label: str) -> str:
        """Another piece of the same tokenizer, such as one that comes next, as people read it."""
        found = next((how for how in self.spelling if how != _TEXT), _UNKNOWN)
        return "".join(spell(label, found))

    @classmethod
    def of_ids(cls, ids: Sequence[int], padding: Sequence[bool] = ()) -> "Tokens":
        """Tokens with nothing known of them but their ids."""
        return cls(tuple(str(i) for i in ids), tuple(ids), padding=tuple(padding))


@dataclass(frozen=True)
class Fit:
    """Which part of a text can be read at once: `kept` followed by `cut` is the text exactly as it was typed.

    Attributes:
        kept: what fits.
        cut: what does not; empty where all of it fits.
        count: how many tokens the whole text has, special ones included.
        limit: how many can be read at once; None where nothing limits it.
    """

    kept: str
    cut: str
    count: int
    limit: int | None


def fit_text(text: str, count: Callable[[str], int], limit: int | None) -> Fit:
    """Keep as many whole words from the start of a text as fit; of a single endless word, as many characters.

    Args:
        text: what was typed.
        count: how many tokens a text has.
        limit: how many are allowed; None for no limit.
    """
    total = count(text)
    if limit is None or total <= limit:
        return Fit(text, "", total, limit)
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if not ends:  # nothing but blanks, and a limit below what a tokenizer adds by itself
        return Fit("", text, total, limit)
    end = _last_fitting(ends, lambda at: count(text[:at]) <= limit)
    if end is None:
        end = _last_fitting(range(1, ends[0] + 1), lambda at: count(text[:at]) <= limit) or 1
    return Fit(text[:end], text[end:], total, limit)


def _last_fitting(ends: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The last of the growing ends that fits, found by halving; None where not even the first does."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(ends[middle]) else (low, middle)
    return ends[low - 1] if low else None


def check_text(text: object, what: str = "a text") -> None:
    """Refuse what is no text.

    Args:
        text: what came.
        what: what it was to be, for the message.

    Raises:
        UnusableText: it isn't text.
    """
    if not isinstance(text, str):
        raise UnusableText(f"{what} has to be a str; got {type(text).__name__}")


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text: runs of letters and digits, apostrophes inside included; any other sign by itself.

    What is seen as one sign stays together: a letter and its accents, an emoji made of several, a flag. Han and kana,
    written without spaces, go sign by sign. Spaces, control and other invisible characters part words and are dropped.
    """
    words: list[str] = []
    open_word = False
    signs = list(_signs(text))
    for index, sign in enumerate(signs):
        kind = _kind(sign)
        following = _kind(signs[index + 1]) if index + 1 < len(signs) else ""
        inside = sign in ("'", "’") and open_word and following == "letter"
        if open_word and (kind == "letter" or inside):
            words[-1] += sign
        elif kind != "blank":
            words.append(sign)
        open_word = kind == "letter" or inside
    return tuple(words)


def _signs(text: str) -> Iterator[str]:
    """What is seen as one sign each, after Unicode Standard Annex 29 with the rules that matter here."""
    sign = ""
    for character in text:
        if sign and _continues(sign, character):
            sign += character
        else:
            if sign:
                yield sign
            sign = character
    if sign:
        yield sign


def _continues(sign: str, character: str) -> bool:
    """Whether a character belongs to the sign before it: accents, joiners, skin tones, tags, a flag's second half."""
    if _kind(sign) == "blank":
        return False
    if unicodedata.category(character)[0] == "M" or character in "\u200c\u200d":
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True
    if _is_flag_half(character):
        return len(sign) == 1 and _is_flag_half(sign)
    return sign[-1] == "\u200d" and _kind(character) != "blank"


def _kind(sign: str) -> str:
    """A "letter" forms words with its neighbours, a "sign" stands alone, a "blank" isn't seen."""
    category = unicodedata.category(sign[0])
    if sign[0].isspace() or category in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp"):
        return "blank"
    if category[0] not in "LN" or _stands_alone(sign[0]):
        return "sign"
    return "letter"


def _stands_alone(character: str) -> bool:
    return unicodedata.name(character, "").startswith(("CJK ", "HIRAGANA", "KATAKANA"))


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
