"""Write tokens and weights readably: "ĠMary" as a light "·" and "Mary", 0.5812 as "0.58".

The explorer's `data/spelling.js` and `data/scale.js` do this too; one table tests both.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from html import escape

# Tokenizers' tokens for an unknown word, in small letters: two of them may stand for different words.
UNKNOWN_WORDS = frozenset(("[unk]", "<unk>", "<|unk|>"))

# Light marks before a piece's text: it has a space before it, or goes on with the word before it.
SPACE, CONTINUES = "·", "‿"

# How tokenizers write their pieces. "unknown" is what nobody says it of, such as files of earlier versions: there the
# marks that stand at a piece's beginning are all there is to go by. "text" means that a piece is its own text.
SPELLINGS = (
    "unknown",
    "text",
    "byte-level",
    "wordpiece",
    "sentencepiece",
    "end-of-word",
    "byte-level end-of-word",
    "bytes",
)

_PREFIX, _META, _SUFFIX = "##", "▁", "</w>"
_FALLBACK = re.compile("(?:<0x[0-9A-F]{2}>)+")
# Byte-level BPE (Radford et al. 2019) writes a byte that is no visible sign of Latin-1 as a later letter.
_SAME = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = (byte for byte in range(256) if byte not in _SAME)
_BYTES = {chr(byte): byte for byte in _SAME} | {chr(256 + place): byte for place, byte in enumerate(_OTHERS)}
# The flags of England, Scotland and Wales are made of invisible signs, which elsewhere could hide a text; bytes that
# are half a character are `surrogateescape`'s; everything else goes one by one.
_SIGNS = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+|[\udc80-\udcff]+|.", re.DOTALL)
# Unicode's first-strong isolate and its end, and the classes of letters and digits that turn what is around them.
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
_TURNED = ("R", "AL", "AN")
# Digits of the largest occurrence that there is room for.
_LONGEST_NUMBER = 6
_DIGITS = "₀₁₂₃₄₅₆₇₈₉"
_SUBSCRIPTS = str.maketrans("0123456789", _DIGITS)
_MARKED = re.compile(rf"^[{SPACE}{CONTINUES}](?=.)|(?<=.){CONTINUES}\Z", re.DOTALL)
_JOINERS = ("\u200c", "\u200d")
# Everything but the characters that XML 1.0 allows in a document (section 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A long text has few distinct pieces, and many callers need each.
_remembered = functools.lru_cache(maxsize=1 << 14)
_NAMED = {"\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡", " ": "␣"}


def occurrences(written: Sequence[str]) -> tuple[int, ...]:
    """Count equal tokens in any case and with any mark, from 1; 0 for a token that comes once.

    The explorer's `occurrences` in `data/spelling.js` counts in the same way; one table tests both.
    """
    words = [_MARKED.sub("", one).lower() for one in written]
    counts, seen, found = Counter(words), Counter[str](), list[int]()
    for word in words:
        seen[word] += 1
        found.append(seen[word] if counts[word] > 1 else 0)
    return tuple(found)


def numbered(word: str, occurrence: int) -> str:
    """Write a repeated word with its occurrence, "the₂"; any other as it is."""
    return word + (str(occurrence).translate(_SUBSCRIPTS) if occurrence else "")


def cut(word: str, longest: int) -> str:
    """Shorten a word, but keep its occurrence."""
    if len(word) <= longest:
        return word
    number = number_of(word)
    return f"{word[: max(1, longest - 1 - len(number))]}…{number}"


def number_of(word: str) -> str:
    """Return the occurrence that a word ends with, such as "₂"."""
    end = word[-_LONGEST_NUMBER:]
    return end[len(end.rstrip(_DIGITS)) :]


def number_repeats(written: Sequence[str]) -> list[str]:
    """Write words in a row as `numbered` does: "the₁", "cat", "the₂"."""
    return list(map(numbered, written, occurrences(written)))


@_remembered
def decode(label: str, spelling: str = "unknown") -> str:
    """Return a piece's text with its leading space; incomplete characters become lone surrogates (PEP 383)."""
    if spelling.startswith("byte-level"):
        label = label.removesuffix(_SUFFIX) if spelling.endswith("end-of-word") else label
        # A piece with other letters was added to the vocabulary as it is.
        return _from_bytes([_BYTES[letter] for letter in label]) if all(one in _BYTES for one in label) else label
    if spelling == "bytes":
        # Each letter is a byte; any other was added to the vocabulary as it is.
        return _from_bytes([ord(letter) for letter in label]) if label.isascii() or max(label) < "\u0100" else label
    if spelling == "sentencepiece":
        return _FALLBACK.sub(lambda found: _from_fallback(found[0]), label.replace(_META, " "))
    if spelling == "wordpiece":
        return label[len(_PREFIX) :] if _goes_on(label) else label
    if spelling == "end-of-word":
        return label.removesuffix(_SUFFIX)
    return label if spelling == "text" else _by_its_marks(label)


def spell(label: str, spelling: str = "unknown") -> tuple[str, str]:
    """Split a piece into its light mark, "" for none, and visible text."""
    text = decode(label, spelling)
    if spelling in ("unknown", "wordpiece") and _goes_on(label):
        return CONTINUES, visible(text)
    if spelling not in ("text", "wordpiece") and text.startswith(" ") and text.strip(" "):
        return SPACE, visible(text[1:])
    if spelling.endswith("end-of-word") and not label.endswith(_SUFFIX):
        return "", visible(text) + CONTINUES
    return "", visible(text)


@_remembered
def carries(label: str, spelling: str = "unknown") -> bool:
    """Return whether a piece has a letter, digit, mark, emoji or byte of one."""
    text = decode(label, spelling)
    return any(_is_part(sign) for sign in text)


@_remembered
def without_marks(label: str, spelling: str = "unknown") -> str:
    """Drop a piece's leading space or marks; keep a piece of marks alone."""
    text = _without_any(label) if spelling == "unknown" else decode(label, spelling)
    return text.strip(" ") or text or label


def join(labels: Sequence[str], spelling: str = "unknown") -> str:
    """Join a word's subword tokens into one of the same spelling."""
    if spelling in ("wordpiece", "unknown"):
        return labels[0] + "".join(without_marks(label, spelling) for label in labels[1:])
    if spelling.endswith("end-of-word"):
        return "".join([*(label.removesuffix(_SUFFIX) for label in labels[:-1]), labels[-1]])
    return "".join(labels)


def visible(text: str) -> str:
    """Replace invisible characters: spaces, controls, partial bytes, text direction."""
    if text and not text.strip("".join(_JOINERS)):
        return "".join(map(_code_point, text))
    # To Python, printable is everything that can be seen, and the space.
    seen = text.isprintable() and " " not in text
    written = (text if seen else _SIGNS.sub(_sign, text)) or "∅"
    return f"◌{written}" if unicodedata.category(written[0]).startswith("M") else written


def _is_part(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category[0] in "LNM" or category == "So" or "\udc80" <= sign <= "\udcff"


@dataclass(frozen=True)
class Character:
    """A character that the tokenizer cut.

    Attributes:
        text: the character; "" if its other bytes are missing.
        first: the position of its first piece.
        counts: how many of its bytes each piece has, from the first on.
    """

    text: str
    first: int
    counts: tuple[int, ...]


def cut_characters(labels: Sequence[str], spellings: Sequence[str]) -> list[Character]:
    """Return the characters whose bytes are in several pieces, and those with bytes missing, in order."""
    found, held = list[Character](), list[tuple[int, int]]()

    def close(text: str = "") -> None:
        if held:
            counts = Counter(place for place, _ in held)
            found.append(Character(text, held[0][0], tuple(counts.values())))
            held.clear()

    for place, (label, how) in enumerate(zip(labels, spellings, strict=True)):
        for sign in decode(label, how):
            if not "\udc80" <= sign <= "\udcff":
                close()
                continue
            if not _goes_on_with([byte for _, byte in held], ord(sign) - 0xDC00):
                close()
            held.append((place, ord(sign) - 0xDC00))
            text = bytes(byte for _, byte in held).decode("utf-8", "ignore")
            if text:
                close(text)
    close()
    return found


def with_characters(parts: Sequence[tuple[str, str]], cut: Sequence[Character]) -> list[tuple[str, str]]:
    """Write whole characters before the first bytes that each token has of one, as in "ก⟨E0⟩".

    Args:
        parts: each token's light mark and text.
    """
    found, named = list(parts), set[int]()
    for one in cut:
        for position in range(one.first, one.first + len(one.counts)):
            mark, text = found[position]
            if one.text and position not in named:
                before = text.rindex("⟨") if position == one.first else 0
                found[position] = mark, text[:before] + visible(one.text) + text[before:]
            named.add(position)
    return found


def _goes_on_with(held: list[int], byte: int) -> bool:
    """Return whether a byte can follow the first ones of a character."""
    missing = 0 if not held else (held[0] >= 0xC0) + (held[0] >= 0xE0) + (held[0] >= 0xF0) + 1 - len(held)
    return missing > 0 and 0x80 <= byte < 0xC0


def xml_text(text: str) -> str:
    """Spell out characters that XML forbids, as in ⟨U+FFFE⟩; don't escape markup."""
    return _NOT_XML.sub(lambda found: _code_point(found[0]), text)


def table_in_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Build an HTML table of escaped texts; each row's first cell is its heading."""
    above = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    below = "".join(
        f'<tr><th style="text-align:left">{escape(first)}</th>'
        f"{''.join(f'<td style={chr(34)}text-align:left{chr(34)}>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return xml_text(f"<table>{above}{below}</table>")


def _goes_on(label: str) -> bool:
    return label.startswith(_PREFIX) and len(label) > len(_PREFIX)


def _without_any(label: str) -> str:
    for mark in (_PREFIX, _META, "Ġ"):
        label = label.removeprefix(mark)
    return label.removesuffix(_SUFFIX)


def _by_its_marks(label: str) -> str:
    if label == "Ċ":
        return "\n"
    if len(label) > 1 and label[0] in "Ġ▁":
        return f" {label[1:]}"
    return label[len(_PREFIX) :] if _goes_on(label) else label


def _from_bytes(numbers: list[int]) -> str:
    return bytes(numbers).decode("utf-8", "surrogateescape")


def _from_fallback(label: str) -> str:
    """Decode bytes written as numbers, such as "<0x0A>"."""
    return bytes.fromhex(label.replace("<0x", "").replace(">", "")).decode("utf-8", "surrogateescape")


def _sign(found: re.Match[str]) -> str:
    sign = found[0]
    if "\udc80" <= sign <= "\udcff":
        return f"⟨{' '.join(f'{ord(byte) - 0xDC00:02X}' for byte in sign)}⟩"
    if len(sign) > 1 or sign in _JOINERS:
        return sign
    if sign in _NAMED:
        return _NAMED[sign]
    if sign < " ":
        return chr(0x2400 + ord(sign))
    # Joiners hold emoji and Indic letters together: they stay. Every other such character would be invisible.
    return _code_point(sign) if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp") else sign


def _code_point(sign: str) -> str:
    return f"⟨U+{ord(sign):04X}⟩"


def set_apart(written: str) -> str:
    """Isolate a right-to-left word with its mark, at its right, and its number, at its left."""
    if _ISOLATE in written or not any(unicodedata.bidirectional(sign) in _TURNED for sign in written):
        return written
    return f"{_ISOLATE}{written}{_END_ISOLATE}"


def without_accents(text: str) -> str:
    """Drop accents, as some tokenizers do."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def weight_text(weight: float) -> str:
    """Write a weight with two digits, "0.58"; a smaller one is "<0.01", and exactly 0 is "0"."""
    size = abs(weight)
    if 0 < size < 0.005:
        return "<0.01" if weight > 0 else ">−0.01"
    # As browsers round: the half up, exactly.
    return f"{'−' if weight < 0 else ''}{Decimal(size).quantize(Decimal('0.01'), ROUND_HALF_UP)}" if size else "0"
