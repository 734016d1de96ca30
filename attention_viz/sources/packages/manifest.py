"""What a folder in the cache says of its own files, so that a half-written or changed one is told from a whole one."""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attention_viz.sources.folders import WEIGHTS, sha256_of

__all__ = ["holds_all", "write_manifest"]

_MANIFEST = "manifest.json"


def write_manifest(folder: Path, source: str, sums: Mapping[str, str]) -> None:
    """Note what the folder holds."""
    files = {name: {"sha256": sha256, **_state(folder / name)} for name, sha256 in sums.items()}
    half = folder / f"{_MANIFEST}.{os.getpid()}"
    half.write_text(json.dumps({"source": source, "files": files}, indent=2) + "\n", encoding="utf-8")
    half.replace(folder / _MANIFEST)


def holds_all(folder: Path, source: str) -> bool:
    """Whether all files that the manifest names are there as they were written, made of this source.

    Sizes and times of change tell that at once. A file that has another time, as after copying, is compared whole, and
    where it is the same, its new time is noted.
    """
    try:
        content = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        files: dict[str, dict[str, Any]] = content["files"]
        changed = [name for name, metadata in files.items() if not _state(folder / name).items() <= metadata.items()]
        same = all(_is_same(folder / name, files[name]) for name in changed)
        if not same or content["source"] != source or WEIGHTS not in files:
            return False
        sums = {name: str(metadata["sha256"]) for name, metadata in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    if changed:
        with contextlib.suppress(OSError):  # where nothing can be written, it is compared again the next time
            write_manifest(folder, source, sums)
    return True


def _is_same(file: Path, metadata: Mapping[str, Any]) -> bool:
    return file.stat().st_size == metadata["bytes"] and sha256_of(file) == metadata["sha256"]


def _state(file: Path) -> dict[str, int]:
    """What tells in no time that a file is the one that was compared."""
    found = file.stat()
    return {"bytes": found.st_size, "changed": found.st_mtime_ns}
