"""The one format of bytes for the browser: a JSON header and arrays behind it.

Layout: header length (unsigned 32-bit, little-endian), header in UTF-8, arrays; the header and each array are padded
to a multiple of eight bytes. The header has each array's offset behind the header, and its byte count.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Num

_ALIGNED = 8


class Packet:
    """The arrays behind a header, equal ones written once."""

    def __init__(self) -> None:
        """Begin without arrays."""
        self._parts = list[bytes]()
        self._places: dict[bytes, tuple[int, int]] = {}
        self._length = 0

    def add(self, plane: bytes) -> tuple[int, int]:
        """Deflate bytes; return their offset and length."""
        # Run lengths alone (Z_RLE) come out smaller here than a search for repeats, and thirty times as fast.
        compressor = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
        return self._put(compressor.compress(plane) + compressor.flush())

    def add_numbers(self, numbers: Num[np.ndarray, "*any"]) -> tuple[int, int]:
        """Add noise undeflated, row by row, little-endian; return its offset and length."""
        return self._put(np.ascontiguousarray(numbers).astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes())

    def _put(self, packed: bytes) -> tuple[int, int]:
        if packed not in self._places:
            self._places[packed] = (self._length, len(packed))
            self._parts += [packed, bytes(_padding(len(packed)))]
            self._length += len(packed) + _padding(len(packed))
        return self._places[packed]

    def digest(self, header: Any) -> str:
        """Return a hash of the arrays and a header."""
        found = hashlib.blake2b(json.dumps(header).encode("utf-8", "replace"), digest_size=8)
        for part in self._parts:
            found.update(part)
        return found.hexdigest()

    def pack(self, header: Mapping[str, Any]) -> bytes:
        """Return header and arrays as bytes; equal ones give equal bytes."""
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
        text += b" " * _padding(4 + len(text))
        return b"".join([struct.pack("<I", len(text)), text, *self._parts])


def _padding(length: int) -> int:
    return -length % _ALIGNED


def read_packet(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """Return a packet's header, and the bytes behind it."""
    (length,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + length]), packed[4 + length :]
