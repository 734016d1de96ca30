"""The operator's rules for opening models outside the catalogue.

Folders must be, links followed, inside allowed ones with all contents. No message reveals anything outside, not even
existence.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from attention_viz.errors import AttentionVizError, ModelNotFound
from attention_viz.serving.settings import SETTINGS
from attention_viz.sources import CATALOGUE

# What the picker offers besides the catalogue.
FOLDER, HUB = "Local folder", "Hub id"

_OFF = {
    "folder": "the operator switched off folders on this machine; choose another model",
    "hub": "the operator switched off hub ids; choose another model",
}
# How far below an allowed folder to search for models, and the most places to search.
_DEEPEST, _MOST_PLACES = 3, 2_000


def other_sources() -> tuple[str, ...]:
    """Return how a model outside the catalogue can be chosen."""
    return (FOLDER,) * bool(SETTINGS.models) + (HUB,) * SETTINGS.hub


def kind(name: str) -> Literal["catalogue", "folder", "hub"]:
    """Return a name's kind; folders precede hub ids."""
    if name in CATALOGUE:
        return "catalogue"
    identity, _ = split(name)
    like_a_path = (
        identity.startswith(("/", ".", "~")) or ".." in identity or "\\" in identity or identity.count("/") > 1
    )
    return "folder" if like_a_path or any(True for _ in _candidates(name)) else "hub"


def refusal(name: str) -> str | None:
    """Return why a name isn't allowed, else None."""
    asked = kind(name)
    if (asked == "folder" and not SETTINGS.models) or (asked == "hub" and not SETTINGS.hub):
        return _OFF[asked]
    try:
        if asked == "folder":
            folder(name)
        if asked == "hub":
            from attention_viz.sources.hub import check_id

            check_id(*split(name))
    except AttentionVizError as error:
        return str(error)
    return None


def folder(name: str) -> Path:
    """Return the folder of that name, links followed."""
    inside = [path for path in _candidates(name) if _allowed(path)]
    if not inside:
        leads_out = any(True for _ in _candidates(name))
        raise ModelNotFound(
            f"{_short(name)} leads out of the allowed folders; choose one inside"
            if leads_out
            else f"no folder {_short(name)} in the allowed folders; check the name"
        )
    path = inside[0].resolve()
    stray = next((file for file in _within(path) if not _allowed(file)), None)
    if stray is not None:
        raise ModelNotFound(f"{_short(name)} holds {stray.name}, a link out of the allowed folders; remove it")
    return path


def folders() -> list[str]:
    """Return model folders inside allowed ones, by path."""
    found = [str(path) for root in SETTINGS.models for path in _model_folders(root) if _allowed(path)]
    return list(dict.fromkeys(found))


def display_name(name: str) -> str:
    """Return a page's model name: a folder's relative path."""
    if kind(name) != "folder":
        return name
    for root in SETTINGS.models:
        if Path(name).is_relative_to(root) and Path(name) != root:
            return Path(name).relative_to(root).as_posix()
    return Path(name).name


def canonical_name(name: str) -> str:
    """Return a model's single name: a whole path, no main branch."""
    if kind(name) == "folder":
        return str(next((path for path in _candidates(name) if _allowed(path)), name))
    return name if name in CATALOGUE else hub_name(*split(name))


def split(name: str) -> tuple[str, str]:
    """Split "owner/name@revision"; the main branch by default."""
    identity, _, revision = name.partition("@")
    return identity, revision or "main"


def hub_name(identity: str, revision: str) -> str:
    """Return a hub model's name from a URL."""
    return f"{identity}@{revision}" if revision not in ("", "main") else identity


def _candidates(name: str) -> Iterator[Path]:
    """Yield folders with this name below allowed ones, wherever links lead."""
    for root in SETTINGS.models:
        try:
            path = Path(os.path.normpath(root / name))
            below = path.is_relative_to(root) or path.is_relative_to(root.resolve())
            if name and below and path.is_dir():
                yield path
        except (OSError, ValueError):  # no path at all: too long, or with a zero byte
            continue


def _allowed(path: Path) -> bool:
    """Return whether a path is in an allowed folder once all links are followed."""
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a link to nowhere, or in a circle
        return False
    return any(resolved.is_relative_to(root.resolve()) for root in SETTINGS.models)


def _within(path: Path) -> Iterator[Path]:
    """Yield a folder's contents; don't enter linked folders, but yield them."""
    for place, inner, files in os.walk(path):
        for name in (*inner, *files):
            yield Path(place) / name


def _model_folders(root: Path) -> Iterator[Path]:
    """Yield folders with a config.json; few and not deep, because disks may be huge."""
    for count, (place, inner, files) in enumerate(os.walk(root)):
        if "config.json" in files:
            yield Path(place)
        depth = len(Path(place).relative_to(root).parts)
        inner[:] = [] if depth >= _DEEPEST else sorted(name for name in inner if not name.startswith("."))
        if count > _MOST_PLACES:
            return


def _short(name: str) -> str:
    return f"“{name[:60]}”"
