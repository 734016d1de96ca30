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
        """Return the manifest's part on progress."""
        part = self.part
        counts = {"texts": part.read, "skipped": part.skipped, "cut": part.cut, "tokens": part.tokens}
        return {"done": counts, "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class Folder:
    """A scan's folder."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Create and lock the folder, removing a killed process's half-written files."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [one.name for one in self.path.iterdir() if not one.name.startswith(".")]
        except OSError as error:
            raise ScanError(f"can't use {self.path} as a scan's folder: {error.strerror or error}") from None
        if others and _MANIFEST not in others and _STATE not in others:
            named = ", ".join(sorted(others)[:3])
            raise ScanError(f"{self.path} contains files that aren't a scan's ({named} …); choose another folder")
        lock = FileLock(self.path / _LOCK, timeout=0)
        try:
            with lock:
                for half in self.path.glob(".*.part"):
                    half.unlink(missing_ok=True)
                yield
        except Timeout:
            raise ScanError(f"another process is scanning into {self.path}; wait for it or stop it") from None

    def manifest(self) -> dict[str, Any] | None:
        """Return the scan's manifest; None if there is none."""
        try:
            found = json.loads((self.path / _MANIFEST).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ScanError(f"can't read {self.path / _MANIFEST}: {error}") from None
        if found.get("format") != _FORMAT:
            raise ScanError(f"{self.path} is a scan of format {found.get('format')}; this version reads {_FORMAT}")
        return found

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the stored manifest."""
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
                f"can't write {self.path / name}: {error.strerror or error}. Earlier progress is saved; free some "
                "space and start the same scan again to continue"
            ) from None
