"""Download a model from the hub, whole or not at all, with progress and cancellation.

Files go into the hub's shared cache, so nothing is downloaded twice, and downloaded models load without a network.
"""

import contextlib
import shutil
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub.utils import tqdm as Bar

from attention_viz.errors import DownloadCancelled, ModelNotFound
from attention_viz.sources.folders import sha256_of
from attention_viz.sources.hub import Plan, RemoteFile, Unreachable, in_plain_words

__all__ = ["download"]

# One download at a time: each has the whole line, and the switch below belongs to one of them.
_downloading = threading.Lock()


def download(
    wanted: Plan,
    *,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """Download a model's missing files.

    config.json comes last, and a file gets its name only when it is whole, so a broken download never looks complete.
    The next try keeps finished files, and restarts the unfinished one.

    Args:
        progress: called repeatedly with the bytes received and the bytes in all.

    Returns:
        The folder with the model.
    """
    if wanted.complete:
        return _place(wanted, _cached(wanted, "config.json"))
    _check_room(wanted)
    bar = _bar(wanted, progress, cancelled)
    with _alone(wanted, cancelled):
        for file in sorted(wanted.files, key=lambda file: (file.name == "config.json", file.name)):
            _fetch(wanted, file, bar)
    return _place(wanted, _cached(wanted, "config.json"))


def _cached(wanted: Plan, file: str) -> Path:
    found = huggingface_hub.try_to_load_from_cache(wanted.name, file, revision=wanted.commit)
    if not isinstance(found, str):
        raise ModelNotFound(f"{file} of {wanted.name} has left the hub's cache on this machine; download it again")
    return Path(found)


def _place(wanted: Plan, config: Path) -> Path:
    """Return the model's folder; note the revision's commit, so that it is found without a network."""
    folder = config.parent
    note = folder.parents[1] / "refs" / wanted.revision
    if not wanted.offline and wanted.revision != wanted.commit:
        with contextlib.suppress(OSError):  # a cache that can't be written to serves as it is
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(wanted.commit)
    return folder


def _fetch(wanted: Plan, file: RemoteFile, bar: type[Bar]) -> None:
    if file.here:
        return
    try:
        with in_plain_words(wanted.name, wanted.revision):
            path = huggingface_hub.hf_hub_download(wanted.name, file.name, revision=wanted.commit, tqdm_class=bar)
    except Unreachable as error:
        raise ModelNotFound(
            f"the download of {wanted.name} stopped at {file.name} ({error}); try again, since finished files are kept"
        ) from error
    fetched = Path(path)
    if file.sha256 is not None and sha256_of(fetched) != file.sha256:
        fetched.resolve().unlink()
        fetched.unlink(missing_ok=True)
        raise ModelNotFound(f"{file.name} of {wanted.name} arrived damaged and was deleted; try again")


def _bar(wanted: Plan, progress: Callable[[int, int], None] | None, cancelled: Callable[[], bool]) -> type[Bar]:
    """Return a progress bar class for the hub's library that counts over all files, and stops if cancelled."""
    received = 0

    class Counter(Bar):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **(options | {"disable": True if progress else None}))

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal received
            received += int(n or 0)
            if progress is not None:
                progress(min(received, wanted.missing), wanted.missing)
            _stop_if(cancelled, wanted)
            return super().update(n)

    return Counter


def _stop_if(cancelled: Callable[[], bool], wanted: Plan) -> None:
    if cancelled():
        raise DownloadCancelled(f"the download of {wanted.name} was cancelled; start it again to use the model")


@contextlib.contextmanager
def _alone(wanted: Plan, cancelled: Callable[[], bool]) -> Generator[None]:
    """Wait for a turn, then use plain HTTP: the hub's Xet protocol can't be stopped between two files."""
    while not _downloading.acquire(timeout=0.2):
        _stop_if(cancelled, wanted)
    constants: Any = huggingface_hub.constants
    before = constants.HF_HUB_DISABLE_XET
    constants.HF_HUB_DISABLE_XET = True
    try:
        _stop_if(cancelled, wanted)
        yield
    finally:
        constants.HF_HUB_DISABLE_XET = before
        _downloading.release()


def _check_room(wanted: Plan) -> None:
    place = Path(huggingface_hub.constants.HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < wanted.missing:
        raise ModelNotFound(
            f"{wanted.name} needs {wanted.missing:,} bytes in the hub's cache, whose disk has {free:,} free; free some"
        )
