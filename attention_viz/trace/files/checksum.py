"""Detect changed bits in a trace file by its checksum."""

import hashlib
import re
from os import PathLike

__all__ = ["BLANK", "CHECKSUM", "intact", "sealed"]

# The entry of our header, and what stands there while the checksum is computed.
CHECKSUM, BLANK = "checksum", "0" * 64
# As our header lies in the file: JSON, as a text of safetensors' own JSON. In what a person typed quotes are escaped
# once more, so there it can't be found.
_ENTRY = re.compile(rb'(?<=\\"' + CHECKSUM.encode() + rb'\\": \\")[0-9a-f]{64}(?=\\")')
# Bytes before safetensors' header, which say how long that is.
_BEFORE = 8
_AT_ONCE = 2**20


def sealed(content: bytes) -> tuple[bytes, memoryview]:
    """Return the file's bytes in two parts, with their SHA-256 in place of `BLANK`."""
    end = _end(content[:_BEFORE])
    header, rest = content[:end], memoryview(content)[end:]
    found = hashlib.sha256(header)
    found.update(rest)
    return _ENTRY.sub(found.hexdigest().encode(), header, count=1), rest


def intact(path: str | PathLike[str], checksum: object) -> bool:
    """Check a file's bytes against its checksum."""
    with open(path, "rb") as file:
        before = file.read(_BEFORE)
        found = hashlib.sha256(_ENTRY.sub(BLANK.encode(), before + file.read(_end(before) - _BEFORE), count=1))
        while part := file.read(_AT_ONCE):
            found.update(part)
    return found.hexdigest() == checksum


def _end(before: bytes) -> int:
    return _BEFORE + int.from_bytes(before, "little")
