"""One immutable value for everything a person chose; `update` applies an event, `resolve` what follows from a run."""

from attention_viz.ui.selection.answer import answer
from attention_viz.ui.selection.events import Clicked, Event, FileClosed, FileOpened, Filled, PageOpened, Picked
from attention_viz.ui.selection.resolve import HeadFinding, Ran, resolve
from attention_viz.ui.selection.update import update
from attention_viz.ui.selection.value import SHARED, Group, GroupValues, Selection

__all__ = [
    "SHARED",
    "Clicked",
    "Event",
    "FileClosed",
    "FileOpened",
    "Filled",
    "Group",
    "GroupValues",
    "HeadFinding",
    "PageOpened",
    "Picked",
    "Ran",
    "Selection",
    "answer",
    "resolve",
    "update",
]
