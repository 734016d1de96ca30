"""The selection, its events and a run's consequences."""

from attention_viz.ui.selection.events import (
    SHARED,
    Clicked,
    Event,
    FileClosed,
    FileOpened,
    Filled,
    Group,
    GroupValues,
    PageOpened,
    Picked,
    Selection,
)
from attention_viz.ui.selection.update import HeadFinding, Ran, answer, resolve, update

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
