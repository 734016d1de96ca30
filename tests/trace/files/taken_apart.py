"""A trace file taken apart and put together again, so that a place in it can be changed.

It has no checksum then, as files from before there were checksums: what is there is looked at, not that it changed.
"""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["put", "put_together", "taken_apart", "tampered"]


def taken_apart(path: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The header that safetensors reads, our own part of it, and the tensors."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    ours = json.loads(header["__metadata__"]["attention_viz"])
    del ours["checksum"]
    header["__metadata__"]["attention_viz"] = json.dumps(ours)
    return header, ours, raw[8 + length :]


def put_together(path: Path, header: Any, body: bytes, ours: object = None) -> Path:
    """A file of these parts.

    Args:
        path: where it is written.
        header: safetensors' own.
        body: the tensors.
        ours: our part of the header; None for the one that stands there. A text stands as it is.
    """
    if ours is not None:
        header["__metadata__"]["attention_viz"] = ours if isinstance(ours, str) else json.dumps(ours)
    told = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(told)) + told + body)
    return path


def tampered(saved: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a good file with our part of its header changed, or replaced by a text that the change returns."""
    header, ours, body = taken_apart(saved)
    replaced = change(ours)
    return put_together(saved.with_name("tampered"), header, body, replaced if isinstance(replaced, str) else ours)


def put(*way: Any) -> Callable[[dict[str, Any]], None]:
    """A change that puts the last argument where the others lead."""
    *steps, last, value = way

    def change(node: Any) -> None:
        for step in steps:
            node = node[step]
        node[last] = value

    return change
