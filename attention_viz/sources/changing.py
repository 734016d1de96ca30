"""A folder that somebody else may write into, as a training does that saves its model again and again."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from torch import nn

from attention_viz.errors import ModelNotFound
from attention_viz.sources.folders import state_of

__all__ = ["keep_apart", "unchanged"]


@contextlib.contextmanager
def unchanged(folder: Path, name: str) -> Generator[None]:
    """Fail if a file of the model changes while it is read in here."""
    before = state_of(folder)
    yield
    if state_of(folder) != before:
        raise ModelNotFound(f"files of {name} changed while they were read; open it again once they are written")


def keep_apart(model: nn.Module) -> None:
    """Copy the numbers of a model into memory of its own.

    As they are read, those of large files are the file's own pages: what is written there would change the open model
    in silence, and a file that becomes shorter would end the whole process.
    """
    for one in (*model.parameters(), *model.buffers()):
        one.data = one.data.clone()
