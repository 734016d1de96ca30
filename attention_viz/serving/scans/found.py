"""Scans of a model's weights, each read once for all.

A scan is named by its folder alone, so no address reveals paths.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attention_viz.corpus.shipped import CORPUS, scans
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.settings import SETTINGS

if TYPE_CHECKING:
    from attention_viz.corpus.scan import Scan

__all__ = ["offered", "opened"]

# So many folders are looked into at most, and so many bytes of opened scans are kept.
_MOST, _ROOM = 500, 100_000_000


def offered(sha256: str | None) -> Mapping[str, Path]:
    """Return finished scans, a shipped one first; `sha256` may be None."""
    if sha256 is None:
        return {}
    ours = [(CORPUS.stem, path) for path in scans().values()]
    theirs = [(path.name, path) for path in _folders()]
    found = dict[str, Path]()
    for name, path in ours + theirs:
        if name not in found and _is_of(path, sha256):
            found[name] = path
    return found


def opened(path: Path) -> "Scan":
    """What a scan says."""
    from attention_viz.corpus.scan import Scan

    # Scanned anew, it is another.
    changed = (path / "manifest.json").stat().st_mtime_ns
    return _scans.get((path, changed), lambda: Scan.load(path))


def _folders() -> Iterator[Path]:
    """Scan folders in the operator's, by name; links that lead out don't count."""
    seen = 0
    for root in SETTINGS.scans:
        if not root.is_dir():
            continue
        for path in sorted(root.iterdir()):
            seen += 1
            if seen > _MOST:
                return
            if path.is_dir() and not path.is_symlink():
                yield path


def _is_of(path: Path, sha256: str) -> bool:
    try:
        manifest = json.loads((path / "manifest.json").read_text("utf-8"))
        return bool(manifest["complete"]) and manifest["model"]["sha256"] == sha256
    except (OSError, ValueError, KeyError, TypeError):
        return False


_scans: "SharedCache[tuple[Path, int], Scan]" = SharedCache(_ROOM, lambda one: one.nbytes)
