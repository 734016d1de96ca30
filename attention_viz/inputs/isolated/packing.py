"""Pack rows of numbers and lists of pieces as bytes, for both ends of a process for texts."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attention_viz.errors import UnusableText

_NUMBERS, _LENGTHS = np.dtype("<i8"), np.dtype("<i4")
# Both are Unicode as Python has it: a piece of a tokenizer that is written in Python may hold half a character.
_AS, _HALVES = "utf-8", "surrogatepass"


def pack_rows(rows: Mapping[str, Sequence[int]]) -> tuple[list[str], bytes]:
    """Return the names and bytes of rows of equal length."""
    return list(rows), b"".join(np.asarray(row, _NUMBERS).tobytes() for row in rows.values())


def unpack_rows(names: Sequence[str], count: int, content: bytes) -> tuple[dict[str, NDArray[np.int64]], bytes]:
    """Return rows of `count` numbers each, and the bytes that follow."""
    size = count * _NUMBERS.itemsize
    if count < 0 or len(content) < size * len(names):
        raise UnusableText("can't read the tokenizer's answer: it has fewer numbers than announced")
    rows = {name: np.frombuffer(content, _NUMBERS, count, at * size).astype(np.int64) for at, name in enumerate(names)}
    return rows, content[size * len(names) :]


def pack_pieces(pieces: Sequence[str | None]) -> bytes:
    """Return texts as bytes, first their lengths, then the texts; None is allowed."""
    lengths = [-1 if piece is None else len(piece) for piece in pieces]
    return np.asarray(lengths, _LENGTHS).tobytes() + "".join(piece or "" for piece in pieces).encode(_AS, _HALVES)


def unpack_pieces(count: int, content: bytes) -> list[str | None]:
    """Return `count` texts."""
    size = count * _LENGTHS.itemsize
    if count < 0 or len(content) < size:
        raise UnusableText("can't read the tokenizer's answer: it has fewer lengths than announced")
    lengths: list[int] = np.frombuffer(content, _LENGTHS, count).tolist()
    text = content[size:].decode(_AS, _HALVES)
    if sum(max(length, 0) for length in lengths) != len(text):
        raise UnusableText("can't read the tokenizer's answer: its pieces and lengths don't match")
    pieces, at = list[str | None](), 0
    for length in lengths:
        pieces.append(None if length < 0 else text[at : at + length])
        at += max(length, 0)
    return pieces
