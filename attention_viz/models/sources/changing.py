"""A folder that somebody else may write into, as a training does that saves its model again and again."""

import contextlib
from collections.abc import Generator

from torch import nn

from attention_viz.errors import ModelNotFound
from attention_viz.models.sources.folders import CheckedFolder

__all__ = ["keep_apart", "unchanged"]


@contextlib.contextmanager
def unchanged(folder: CheckedFolder) -> Generator[None]:
    """What is read in here is of one moment: no file came, went or changed meanwhile.

    Raises:
        ModelNotFound: one did.
    """
    before = _state(folder)
    yield
    if _state(folder) != before:
        raise ModelNotFound(f"files of {folder.name} changed while they were read; open it again once they are written")


def keep_apart(model: nn.Module) -> None:
    """Copy the numbers of a model into memory of its own.

    As they are read, those of large files are the file's own pages: what is written there would change the open model
    in silence, and a file that becomes shorter would end the whole process.
    """
    for one in (*model.parameters(), *model.buffers()):
        one.data = one.data.clone()


def _state(folder: CheckedFolder) -> dict[str, tuple[int, int, int]]:
    """Of each file what tells in no time whether it is the one that it was: place, size, time of change."""
    found = {path.name: path.stat() for path in folder.path.iterdir() if path.is_file()}
    return {name: (one.st_ino, one.st_size, one.st_mtime_ns) for name, one in found.items()}
