"""The Class page's choices, row and slots."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from attention_viz.lesson.progress.record import STUDENTS
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import NamesInOrder, WholeNumber
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group

_ROOM = 30
# The placeholder's height, in pixels.
_WAIT = 120


def _lessons(_choice: object, lessons: Sequence[str]) -> Sequence[str]:
    return lessons


@dataclass(frozen=True)
class ClassChoice:
    """The Class page's URL choices."""

    lessons: tuple[str, ...] = parameter((), NamesInOrder(_lessons), "the lessons of the class, in order", brief=True)
    students: int = parameter(_ROOM, WholeNumber(STUDENTS), "the number of students", brief=True)


CLASS_CHOICES = Group(ClassChoice(), "class-")


def _layout(_state: State, row: ControlRow) -> Slots:
    assert row.fold is not None
    wait = st.empty()
    return Slots(PicturePlace(wait, stays=False), _WAIT, {"fold": row.fold, "class": st.container(key="class-body")})


PAGE = Page(
    "Class",
    "class",
    row=pickers.sentence,
    layout=_layout,
    groups=(CLASS_CHOICES,),
    address_follows_run=True,
    badges="none",
)
