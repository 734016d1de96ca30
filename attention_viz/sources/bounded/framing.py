"""Frame the messages between this process and a bounded one: lengths, JSON, bytes."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

# The lengths of the JSON and of the bytes.
_LENGTHS = struct.Struct(">QQ")
# JSON takes many times its length once it is parsed, so large contents go as bytes.
_LONGEST_JSON = 16_000_000


class TooLong(Exception):
    """A message longer than the limit."""


@dataclass(frozen=True)
class Message:
    """One message between processes; `values` must fit a JSON object."""

    values: Mapping[str, Any]
    content: bytes = b""


def pack(message: Message) -> bytes:
    """Return a message as bytes."""
    values = json.dumps(message.values).encode()
    return b"".join((_LENGTHS.pack(len(values), len(message.content)), values, message.content))


def receive(read: Callable[[int], bytes], longest: int) -> Message:
    """Read one message of at most `longest` bytes; `read` must return exactly the requested bytes."""
    values_length, content_length = _LENGTHS.unpack(read(_LENGTHS.size))
    if values_length > min(longest, _LONGEST_JSON) or values_length + content_length > longest:
        raise TooLong
    values = _parsed(read(values_length))
    return Message(values, read(content_length))


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        values = json.loads(content)
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError("the message isn't a JSON object")
    return cast("dict[str, Any]", values)
