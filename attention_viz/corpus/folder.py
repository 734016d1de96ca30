"""A scan's folder, written by one process at a time."""

import contextlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attention_viz.corpus.part import CorpusPart
from attention_viz.errors import ScanError
from attention_viz.trace.files.whole_file import write_whole

_MANIFEST, _STATE, _LOCK = "manifest.json", "state.safetensors", ".lock"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Progressed:
    """A scan's progress: `chunks` done from the start."""

    chunks: int
    fingerprint: str
    part: CorpusPart

    @property
    def summary(self) -> dict[str, Any]:
        """What a manifest says of it."""
        part = self.part
        counts = {"texts": part.read, "skipped": part.skipped, "cut": part.cut, "tokens": part.tokens}
        return {"done": counts, "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class Folder:
    """Where a scan lies."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Create and lock the folder, removing a killed process's half-written files."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [one.name for one in self.path.iterdir() if not one.name.startswith(".")]
        except OSError as error:
            raise ScanError(f"{self.path} can't be a scan's folder: {error.strerror or error}") from None
        if others and _MANIFEST not in others and _STATE not in others:
            raise ScanError(f"{self.path} holds other things than a scan: {', '.join(sorted(others)[:3])} …")
        lock = FileLock(self.path / _LOCK, timeout=0)
        try:
            with lock:
                for half in self.path.glob(".*.part"):
                    half.unlink(missing_ok=True)
                yield
        except Timeout:
            raise ScanError(f"another process scans into {self.path} at this moment; wait for it or stop it") from None

    def manifest(self) -> dict[str, Any] | None:
        """Return the scan's manifest; None if there is none."""
        try:
            found = json.loads((self.path / _MANIFEST).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ScanError(f"{self.path / _MANIFEST} can't be read: {error}") from None
        if found.get("format") != _FORMAT:
            raise ScanError(f"{self.path} is a scan of format {found.get('format')}; this version reads {_FORMAT}")
        return found

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Keep it, in place of the one before."""
        summary = json.dumps({"format": _FORMAT, **manifest}, indent=2, ensure_ascii=False)
        self.write(_MANIFEST, f"{summary}\n".encode())

    def state(self) -> Progressed | None:
        """Return the progress; None if not begun or complete."""
        path = self.path / _STATE
        if not path.exists():
            return None
        part, summary = CorpusPart.of_file(str(path))
        return Progressed(int(summary["chunks"]), str(summary["fingerprint"]), part)

    def write_state(self, state: Progressed) -> None:
        """Replace the stored progress."""
        self.write(_STATE, state.part.to_bytes(chunks=state.chunks, fingerprint=state.fingerprint))

    def drop_state(self) -> None:
        """Delete the progress once the tables are complete."""
        (self.path / _STATE).unlink(missing_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, or leave the old one."""
        try:
            write_whole(self.path / name, content)
        except OSError as error:
            raise ScanError(
                f"{self.path / name} can't be written: {error.strerror or error}. What was done before is kept: make "
                "room and start the same scan again, which goes on from there"
            ) from None
