"""Write a packaged model in another format as a folder of safetensors, once, into the user's cache.

The folder is written beside its final path and renamed when complete, so that a half-written one is never used; a lock
makes a second process wait instead of writing the same. Source and result are checked by sha256.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from attention_viz.errors import ModelNotFound
from attention_viz.sources.folders import WEIGHTS, sha256_of

# The environment variable that moves the cache.
VARIABLE = "ATTENTION_VIZ_CACHE"
_MANIFEST = "manifest.json"


def cache_folder() -> Path:
    """Return the folder that `VARIABLE` names; by default the system's cache folder of this user."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("attention_viz")


def write_manifest(folder: Path, source: str, sums: Mapping[str, str]) -> None:
    """Record the folder's files."""
    files = {name: {"sha256": sha256, **_state(folder / name)} for name, sha256 in sums.items()}
    half = folder / f"{_MANIFEST}.{os.getpid()}"
    half.write_text(json.dumps({"source": source, "files": files}, indent=2) + "\n", encoding="utf-8")
    half.replace(folder / _MANIFEST)


def holds_all(folder: Path, source: str) -> bool:
    """Return whether all files in the manifest are unchanged and come from this source.

    Sizes and change times show it quickly. A file with another time is compared whole; if equal, its new time is
    recorded.
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
    """Return a file's state, which shows quickly that it hasn't changed."""
    found = file.stat()
    return {"bytes": found.st_size, "changed": found.st_mtime_ns}


_CARD = "README.md"
_CARDS = Path(__file__).with_name("cards")
# Bytes that stay free on the disk, for the small files and other programs.
_SPARE = 20_000_000


@dataclass(frozen=True)
class Conversion:
    """How a file of a package becomes a model's folder.

    Attributes:
        revision: increase it if the converter's output for the same file changes.
        beside: other files of the package that it reads, each with its sha256.
    """

    model: str
    revision: int
    file: str
    size: int
    sha256: str
    converter: str
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """The model's folder, once it is written."""
        return cache_folder() / "models" / f"{self.model}.{self.revision}"

    @property
    def is_complete(self) -> bool:
        """Whether the folder is there with all its files, unchanged since they were written."""
        return holds_all(self.folder, self.sha256)

    def complete(
        self,
        package: Path | None,
        sha256: str | None,
        size: int,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> Path:
        """Return the model's folder; write it first if it is missing, half-written or changed.

        `package` is None if it isn't installed.
        """
        folder = self.folder
        if self.is_complete:
            return folder
        from filelock import FileLock

        with _writable(self.model):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(folder.with_name(f"{folder.name}.lock")):
                if not self.is_complete:  # another process may have written it meanwhile
                    source = self.source(package)
                    _remove_leftovers(folder)
                    _check_room(self.model, folder.parent, size)
                    self._write(source, folder, sha256, progress)
        return folder

    def source(self, package: Path | None) -> Path:
        """Return the file in the package, compared whole."""
        command = f"attention-viz models --install {self.model}"
        if package is None:
            found = "half-written or damaged in the cache of" if self.folder.exists() else "not on"
            raise ModelNotFound(f"{self.model} is {found} this machine; install it with {command}")
        source = package / self.file
        found = source.stat().st_size if source.is_file() else 0
        if found != self.size:
            raise ModelNotFound(
                f"the package {package.name} is damaged ({self.file} has {found:,} bytes instead of {self.size:,}); "
                f"fix it with {command}"
            )
        for file, expected in ((self.file, self.sha256), *self.beside):
            sha256 = sha256_of(package / file) if (package / file).is_file() else "of no file"
            if sha256 != expected:
                raise ModelNotFound(
                    f"the package {package.name} is damaged ({file} has sha256 {sha256}, expected {expected}); "
                    f"fix it with {command}"
                )
        return source

    def _write(self, source: Path, folder: Path, sha256: str | None, progress: Callable[[int, int], None]) -> None:
        from attention_viz.sources.packages.converters import CONVERTERS  # they import torch

        with tempfile.TemporaryDirectory(prefix=_part(folder), dir=folder.parent) as place:
            written = Path(place) / folder.name
            written.mkdir()
            CONVERTERS[self.converter](source, written, progress)
            shutil.copyfile(_CARDS / f"{self.model}.md", written / _CARD)
            sums = {path.name: sha256_of(path) for path in sorted(written.iterdir())}
            if sums[WEIGHTS] != sha256:
                raise ModelNotFound(
                    f"the conversion of {self.model} failed with sha256 {sums[WEIGHTS]}, expected {sha256}; check "
                    "this machine's disk and memory"
                )
            write_manifest(written, self.sha256, sums)
            written.rename(folder)


def _part(folder: Path) -> str:
    """Return the name prefix of the folder that is being written."""
    return f".{folder.name}-"


def _remove_leftovers(folder: Path) -> None:
    """Remove incomplete folders of stopped processes; the lock ensures that no process writes now."""
    for left in folder, *folder.parent.glob(f"{_part(folder)}*"):
        shutil.rmtree(left, ignore_errors=True)


def _check_room(name: str, place: Path, size: int) -> None:
    free, needed = shutil.disk_usage(place).free, size + _SPARE
    if free < needed:
        raise ModelNotFound(
            f"{name} needs {needed:,} bytes in the cache, whose disk has {free:,} free; choose another folder with "
            f"{VARIABLE}"
        )


@contextlib.contextmanager
def _writable(name: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ModelNotFound(
            f"can't convert {name} into the cache on this machine ({error.strerror or error}); choose another folder "
            f"with {VARIABLE}"
        ) from error
