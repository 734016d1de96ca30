"""The Step by step page."""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import OneOf, WholeNumber
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group

# The view without an open step: all steps for the chosen pair, as a pipeline.
PIPELINE = "pipeline"
# How many terms of a score the pipeline can name.
MOST_TERMS = 10


@dataclass(frozen=True)
class Possible:
    """The trace's possible choices.

    Attributes:
        options: the model's own way first.
        as_the_model: the meaning of "model", by switch name.
    """

    options: Mapping[str, Any]
    as_the_model: Mapping[str, str] = field(default_factory=dict[str, str])
    own: bool = False


def _there(name: str) -> Callable[[object, Possible], Any]:
    return lambda _, known: known.options[name]


def _switch(name: str) -> OneOf:
    """Define a switch whose "model" option also goes by its meaning."""

    def synonyms(known: Possible) -> dict[str, str]:
        return {known.as_the_model[name]: "model"} if name in known.as_the_model else {}

    return OneOf(_there(name), synonyms=synonyms)


def _own(choice: object, known: Possible | None) -> bool:
    return known is not None and known.own


class _PositionKind(WholeNumber):
    """A shared text position in the URL; all pages report an invalid number."""

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the position if the text has it."""
        return super().read(name, text, instead, allowed) if text.isdecimal() else (instead, [])


@dataclass(frozen=True)
class StepChoice:
    """The Step by step page's URL choices."""

    step: str = parameter(PIPELINE, OneOf(_there("step")), "the open step")
    query: int = parameter(0, _PositionKind(_there("query")), "the chosen pair's query position")
    key: int = parameter(0, _PositionKind(_there("key")), "the chosen pair's key position")
    dimension: int = parameter(0, WholeNumber(_there("dimension")), "the column in a matrix of dimensions")
    scale: str = parameter("model", _switch("scale"), "the scale")
    precision: str = parameter("model", _switch("precision"), "the precision")
    notation: str = parameter("rows", OneOf(_there("notation")), "the notation")
    variant: str = parameter("multi", OneOf(_there("variant")), "the variant, for `scratch`", applies=_own)
    terms: int = parameter(6, WholeNumber(range(1, MOST_TERMS + 1)), "how many of the score's terms are named")
    all: str = parameter("no", OneOf(("no", "yes")), "all steps at once")


def is_pipeline(chosen: StepChoice) -> bool:
    """Return whether neither one step nor all are open."""
    return chosen.step == PIPELINE and chosen.all == "no"


STEP_CHOICES = Group(StepChoice(), "steps-")


_HEIGHT = 750


def _layout(_state: State, row: ControlRow) -> Slots:
    named = {"options": row.options, "notes": st.container()}
    with st.container(key="steps-picture", gap=None):
        # A slot apart, as an empty one loses its content whenever the page runs, and with it the focus.
        picture, named["pipeline"], named["drawer"] = st.empty(), st.container(), st.container()
    named["below"], named["rest"] = st.container(), st.container(key="steps-rest-slot")
    return Slots(PicturePlace(picture, stays=False), _HEIGHT, named, apart=True)


PAGE = Page(
    "Step by step",
    "steps",
    row=functools.partial(pickers.choose, "Step by step", mixers=True),
    layout=_layout,
    groups=(STEP_CHOICES,),
    address_follows_run=True,
)
