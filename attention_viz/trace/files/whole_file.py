"""Write files atomically: to a neighbour, then moved into place."""

import os
import secrets
import shutil
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


def write_whole(path: str | PathLike[str], *content: bytes | memoryview) -> None:
    """Replace a file once whole, keeping its permissions."""
    write_pieces(path, content)


def write_pieces(path: str | PathLike[str], content: "Iterable[Buffer]") -> None:
    """Replace a file as `write_whole` does, by pieces that are made as they are written."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a pipe or a device, whose place nothing else can take; a folder refuses
        with path.open("wb") as file:
            for part in content:
                file.write(part)
        return
    target = path.resolve()  # a link stays one
    if not target.parent.is_dir():  # else the file beside it would be named, of which nobody knows
        raise FileNotFoundError(f"no folder {target.parent}")
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        # Made as any file is: safetensors' own writer makes files that nobody else may read.
        with beside.open("xb") as file:
            for part in content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
