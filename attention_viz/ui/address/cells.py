"""Hand-drawn matrix cells as a URL code."""

import base64
import zlib

import numpy
from jaxtyping import Bool

from attention_viz.errors import ShapeError
from attention_viz.explorer.limits import LONGEST_DRAWN
from attention_viz.ui.address.kinds import AnyText

Cells = Bool[numpy.ndarray, "query key"]

# A drawing as `to_code` writes it, checked on use.
DRAWN = AnyText(carried=lambda _: True)


def to_code(blocked: Cells) -> str:
    """Encode blocked cells for a URL: token count, then packed bits."""
    packed = zlib.compress(numpy.packbits(blocked).tobytes(), 9)
    return f"{len(blocked)}-{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def from_code(code: str, count: int) -> Cells:
    """Decode blocked cells for that many tokens; none for ""."""
    if not code:
        return numpy.zeros((count, count), dtype=bool)
    number, _, letters = code.partition("-")
    length = int(number) if number.isascii() and number.isdecimal() and len(number) < 5 else 0
    if not 1 <= length <= LONGEST_DRAWN:
        raise _unreadable(code)
    if length != count:
        raise ShapeError(
            f"the drawn cells are for {length} tokens; this text has {count}. Use a text of {length} tokens, or draw "
            "anew"
        )
    return (
        numpy.unpackbits(_unpacked(code, letters, -(-count * count // 8)), count=count * count)
        .reshape(count, count)
        .astype(bool)
    )


def _unpacked(code: str, letters: str, size: int) -> numpy.ndarray:
    """Decode no more than `size` bytes, because a small code can expand to many."""
    unpacker = zlib.decompressobj()
    try:
        packed = base64.b64decode(letters + "=" * (-len(letters) % 4), altchars=b"-_", validate=True)
        content = unpacker.decompress(packed, size + 1)
    except (ValueError, zlib.error):
        raise _unreadable(code) from None
    if len(content) != size:
        raise _unreadable(code)
    return numpy.frombuffer(content, dtype=numpy.uint8)


def _unreadable(code: str) -> ShapeError:
    short = code if len(code) <= 40 else code[:39] + "…"
    return ShapeError(
        f"can't read the cells “{short}”; a drawing is a number of tokens, up to {LONGEST_DRAWN}, a dash, and letters "
        "that this page wrote"
    )
