"""A corpus in chunks of work, and its fingerprint."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

# Texts in a chunk: enough for several batches of texts of about the same length, and little to do again after a kill.
CHUNK = 64


@dataclass(frozen=True)
class Chunk:
    """Consecutive texts.

    Attributes:
        number: from 0.
        start: its first text's number.
        fingerprint: of all texts up to its end.
    """

    number: int
    start: int
    texts: tuple[str, ...]
    fingerprint: str


def chunks_of(texts: Iterable[str], size: int = CHUNK) -> Iterator[Chunk]:
    """Split a corpus into chunks, read lazily."""
    ahead, number, fingerprint = iter(texts), 0, ""
    while some := tuple(islice(ahead, size)):
        fingerprint = _following(fingerprint, some)
        yield Chunk(number, number * size, some, fingerprint)
        number += 1


def _following(fingerprint: str, texts: Iterable[str]) -> str:
    found = hashlib.sha256(fingerprint.encode())
    for text in texts:
        said = text.encode("utf-8", "surrogatepass")
        found.update(len(said).to_bytes(8, "big"))
        found.update(said)
    return found.hexdigest()
