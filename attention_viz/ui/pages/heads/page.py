"""The Heads page: its choices in the URL, its controls and its slots."""

import functools
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import get_args

import streamlit as st

from attention_viz.analysis.metrics import METRICS
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State, Switch
from attention_viz.ui.address.cells import DRAWN
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, OneOf
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits_choice import CHANGES
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import PicturePlace, is_at_hand
from attention_viz.ui.parts.notices import show_link_limit
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group

# How all heads are shown, and by what one can look for some of them; each by its name in the address.
VIEWS = {
    "roles": "Roles",
    "patterns": "Patterns",
    "silenced": "Silenced",
    "colours": "By a metric",
    "scatter": "Two metrics",
    "map": "By likeness",
}
# Characters, typed or in a link.
LONGEST_STORY = 1_000
PLOTS = {"weights": "Weights", "vectors": "Queries and keys"}
# The names in `attention_viz.analysis.roles`, for which the first paint doesn't wait.
ROLE_NAMES = (
    *("previous", "next", "above", "itself", "same token", "induction", "punctuation"),
    *("first", "broad", "mixed"),
)
SEARCHES = {"words": "Words", "pattern": "Pattern", "detector": "Detector"}


def _metrics(choice: object, known: object) -> Collection[str]:
    return METRICS


def _detectors(choice: object, known: Collection[str]) -> Collection[str]:
    return known


def _word(name: str) -> Callable[[Mapping[str, str]], bool]:
    """Return whether an old URL uses a position's name for a word."""
    return lambda address: not address[name].isdecimal()


@dataclass(frozen=True)
class HeadsChoice:
    """The Heads page's own choices in the URL."""

    metric: str = parameter("entropy", OneOf(_metrics), "the metric that is shown")
    view: str = parameter("roles", OneOf(tuple(VIEWS)), "how all heads are shown")
    beside: str = parameter("previous", OneOf(_metrics), "what stands up in the scatter")
    search: str = parameter("words", OneOf(tuple(SEARCHES)), "how one searches")
    query_word: str = parameter("bank", AnyText(), "the word that looks", older=Older("query", _word("query")))
    key_word: str = parameter("river", AnyText(), "the word looked at", older=Older("key", _word("key")))
    pattern: str = parameter("", DRAWN, "what was drawn", brief=True)
    role: str | None = parameter(None, OneOf(ROLE_NAMES, nothing="none"), "the role whose heads stand out", brief=True)
    plot: str = parameter("weights", OneOf(tuple(PLOTS)), "how the chosen head is shown", brief=True)
    silence: Switch = parameter("off", OneOf(get_args(Switch)), "the chosen head silenced", brief=True)
    detector: str = parameter("previous", OneOf(_detectors), "the detector")
    texts: str = parameter("", AnyText(), "more texts", brief=True)
    scan: str = parameter("", AnyText(), "the scan of many texts that is shown", brief=True)
    story: str = parameter("", AnyText(LONGEST_STORY), "the story that is put to the test", brief=True)


HEADS_CHOICES = Group(HeadsChoice(), "heads-")


@dataclass
class _AtlasOf:
    of: Hashable = None


def _may_stay(state: State) -> bool:
    """Return whether the screen's last numbers are these texts'."""
    return is_at_hand(state) and visit.memory(_AtlasOf).of == _what(state)


def remember(state: State) -> None:
    """Remember the last measured atlas's texts."""
    visit.memory(_AtlasOf).of = _what(state)


def _what(state: State) -> Hashable:
    return state.request, visit.chosen(HEADS_CHOICES).texts, opening.opened() is not None


# Fewer than the app keeps traces, so that a click doesn't run them all again.
MOST_TEXTS = 20


def split_texts(typed: str) -> list[str]:
    """Split typed texts by line, skipping empty lines."""
    return [line.strip() for line in typed.splitlines() if line.strip()]


def _pick_texts() -> None:
    """Where they are typed."""
    # Its widget comes before the page knows what its other parameters may be.
    visit.settle(HEADS_CHOICES, only={"texts"})
    widgets.show(
        st.text_area,
        "More texts",
        of=HEADS_CHOICES,
        name="texts",
        height=120,
        max_chars=SETTINGS.longest_input,
        placeholder="One text a line",
        help=f"{MOST_TEXTS} at most. Roles and numbers are then the mean over the sentence and these texts, and the "
        "search by words goes over all of them. Patterns are the sentence's.",
    )
    show_link_limit(visit.chosen(HEADS_CHOICES).texts, "them")


# Of the atlas with what is below it, in pixels.
_HEIGHT = 720


def _controls(_state: State, row: ControlRow) -> None:
    with row.options:
        _pick_texts()


def _layout(state: State, _row: ControlRow) -> Slots:
    notes, picture = st.container(), PicturePlace.of(_may_stay(state))
    return Slots(picture, _HEIGHT, {"notes": notes})


PAGE = Page(
    "Heads",
    "heads",
    row=functools.partial(pickers.choose, "Heads", with_readings=True),
    layout=_layout,
    groups=(HEADS_CHOICES, CHANGES),
    controls=_controls,
    address_follows_run=True,
)
