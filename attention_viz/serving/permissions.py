"""Which models a visitor may ask for, besides those of the catalogue: the operator's to decide.

A folder has to lie inside one of those that the operator named, with everything in it, whatever links say. A message
never tells of anything outside: not even whether it exists.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from attention_viz.errors import AttentionVizError, ModelNotFound
from attention_viz.models import CATALOGUE
from attention_viz.serving.settings import SETTINGS

__all__ = [
    "FOLDER",
    "HUB",
    "canonical_name",
    "display_name",
    "folder",
    "folders",
    "hub_name",
    "kind",
    "other_sources",
    "refusal",
    "split",
]

# What the picker offers besides the catalogue.
FOLDER, HUB = "a folder on this machine", "a hub id"

_OFF = {
    "folder": "folders on this machine are switched off here, by the operator",
    "hub": "ids on the hub are switched off here, by the operator",
}
# How far below an allowed folder models are looked for, and at how many places at most.
_DEEPEST, _MOST_PLACES = 3, 2_000


def other_sources() -> tuple[str, ...]:
    """How a model can be chosen that is not in the catalogue."""
    return (FOLDER,) * bool(SETTINGS.models) + (HUB,) * SETTINGS.hub


def kind(name: str) -> Literal["catalogue", "folder", "hub"]:
    """What a name asks for; a folder that is there goes before an id on the hub."""
    if name in CATALOGUE:
        return "catalogue"
    identity, _ = split(name)
    like_a_path = (
        identity.startswith(("/", ".", "~")) or ".." in identity or "\\" in identity or identity.count("/") > 1
    )
    return "folder" if like_a_path or any(True for _ in _candidates(name)) else "hub"


def refusal(name: str) -> str | None:
    """Why a name can't be had here; None where nothing stands against it."""
    asked = kind(name)
    if (asked == "folder" and not SETTINGS.models) or (asked == "hub" and not SETTINGS.hub):
        return _OFF[asked]
    try:
        if asked == "folder":
            folder(name)
        if asked == "hub":
            from attention_viz.models.sources.hub import check_id

            check_id(*split(name))
    except AttentionVizError as error:
        return str(error)
    return None


def folder(name: str) -> Path:
    """The folder of that name, its links followed."""
    inside = [path for path in _candidates(name) if _allowed(path)]
    if not inside:
        leads_out = any(True for _ in _candidates(name))
        raise ModelNotFound(
            f"{_short(name)} leads out of the folders that may be read here"
            if leads_out
            else f"there is no folder {_short(name)} inside those that may be read here"
        )
    path = inside[0].resolve()
    stray = next((file for file in _within(path) if not _allowed(file)), None)
    if stray is not None:
        raise ModelNotFound(
            f"{_short(name)} holds {stray.name}, a link that leads out of the folders that may be read here"
        )
    return path


def folders() -> list[str]:
    """The folders with a model in them, inside the allowed ones, by their paths."""
    found = [str(path) for root in SETTINGS.models for path in _model_folders(root) if _allowed(path)]
    return list(dict.fromkeys(found))


def display_name(name: str) -> str:
    """What a model is called on the page: a folder by its path from the allowed one."""
    if kind(name) != "folder":
        return name
    for root in SETTINGS.models:
        if Path(name).is_relative_to(root) and Path(name) != root:
            return Path(name).relative_to(root).as_posix()
    return Path(name).name


def canonical_name(name: str) -> str:
    """The one name of a model that can be asked for by several: a folder's whole path, the main branch unsaid."""
    if kind(name) == "folder":
        return str(next((path for path in _candidates(name) if _allowed(path)), name))
    return name if name in CATALOGUE else hub_name(*split(name))


def split(name: str) -> tuple[str, str]:
    """The id and the revision in "owner/name@revision"; the main branch where there is none."""
    identity, _, revision = name.partition("@")
    return identity, revision or "main"


def hub_name(identity: str, revision: str) -> str:
    """The name of a model on the hub, as an address carries it."""
    return f"{identity}@{revision}" if revision not in ("", "main") else identity


def _candidates(name: str) -> Iterator[Path]:
    """The folders that a name may mean: below an allowed one by how it is written, wherever links then lead."""
    for root in SETTINGS.models:
        try:
            path = Path(os.path.normpath(root / name))
            below = path.is_relative_to(root) or path.is_relative_to(root.resolve())
            if name and below and path.is_dir():
                yield path
        except (OSError, ValueError):  # no path at all: too long, or with a zero byte
            continue


def _allowed(path: Path) -> bool:
    """Whether a path lies inside an allowed folder once every link is followed."""
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a link to nowhere, or in a circle
        return False
    return any(resolved.is_relative_to(root.resolve()) for root in SETTINGS.models)


def _within(path: Path) -> Iterator[Path]:
    """Every file and folder in a folder; those behind links to folders are not entered, the links themselves count."""
    for place, inner, files in os.walk(path):
        for name in (*inner, *files):
            yield Path(place) / name


def _model_folders(root: Path) -> Iterator[Path]:
    """Folders with a config.json, not deep and not many: a huge disk is not searched."""
    for count, (place, inner, files) in enumerate(os.walk(root)):
        if "config.json" in files:
            yield Path(place)
        depth = len(Path(place).relative_to(root).parts)
        inner[:] = [] if depth >= _DEEPEST else sorted(name for name in inner if not name.startswith("."))
        if count > _MOST_PLACES:
            return


def _short(name: str) -> str:
    return f"“{name[:60]}”"
