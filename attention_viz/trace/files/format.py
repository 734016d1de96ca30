"""The conventions of trace files for writing and reading, with their checksum."""

import hashlib
import os
import re
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

# A version that knows nothing of layers left out would give those that are there other numbers: it reads format 1 only.
# One that knows nothing of weights in place of terms, or of rounded numbers, reads formats 1 and 2.
# Version 1.0.0 counts a hybrid's attention layers from 0: `kept_entry` writes that, and the model's own numbers beside.
# One that knows nothing of layers without a softmax would leave them out in silence: it reads formats 1 to 3.
# One that knows nothing of causal masks without cells would take such a layer for one without a mask, and one that
# knows nothing of heads left out would give the others new numbers: formats 1 to 4. One that knows nothing of indexers
# would take the keys that they left out for masked ones: formats 1 to 5. One that knows nothing of slots would take
# latents for words: formats 1 to 6.
FORMATS = tuple(range(1, 8))
FORMAT_OF_ALL, FORMAT_OF_SOME, FORMAT_OF_LESS, FORMAT_OF_MIXERS, FORMAT_OF_CAUSAL, FORMAT_OF_PICKED = FORMATS[:6]
FORMAT_OF_SLOTS = FORMATS[6]
# The entry of the file's metadata that holds our header.
HEADER = "attention_viz"
# A layer's entry in place of the cells of a causal mask.
CAUSAL = "causal"
# The heads and rows of a file that keeps some only.
PART = "part"
# A layer's entry for the keys that its indexer picked.
PICKING = "picking"
# A layer's tensor in a file of weights alone.
WEIGHTS = "weights"
# What of a trace a file holds.
WHAT = ("all", "terms", WEIGHTS)


# Our header's entry, and its placeholder while the checksum is computed.
CHECKSUM, BLANK = "checksum", "0" * 64
# As our header lies in the file: JSON, as a text of safetensors' own JSON. In what a person typed quotes are escaped
# once more, so there it can't be found.
_ENTRY = re.compile(rb'(?<=\\"' + CHECKSUM.encode() + rb'\\": \\")[0-9a-f]{64}(?=\\")')
# Bytes before safetensors' header, which say how long that is.
_BEFORE = 8
_AT_ONCE = 2**20
# Bytes of a file that is read whole for its checksum, at most: 1 GiB.
MOST_CHECKED = 2**30


def sealed(header: bytes, rest: "Iterable[Buffer]") -> bytes:
    """Return the file's header with the SHA-256 of all its bytes in place of `BLANK`."""
    found = hashlib.sha256(header)
    for part in rest:
        found.update(part)
    return _ENTRY.sub(found.hexdigest().encode(), header, count=1)


def intact(path: str | PathLike[str], checksum: object) -> bool:
    """Check a file's bytes against its checksum, unless that would read gigabytes before one head is shown."""
    if os.path.getsize(path) > MOST_CHECKED:
        return isinstance(checksum, str)
    with open(path, "rb") as file:
        before = file.read(_BEFORE)
        found = hashlib.sha256(_ENTRY.sub(BLANK.encode(), before + file.read(_end(before) - _BEFORE), count=1))
        while part := file.read(_AT_ONCE):
            found.update(part)
    return found.hexdigest() == checksum


def _end(before: bytes) -> int:
    return _BEFORE + int.from_bytes(before, "little")
