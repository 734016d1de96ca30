"""The Explore page's URL choices, controls, slots and recording."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.serving.recorded import recorded_payload
from attention_viz.serving.runs import Run, has_run, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import InputKind
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber
from attention_viz.ui.controls import pickers, reading
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.packing import payload_of
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import place_picture
from attention_viz.ui.parts.explorer import chosen, show_explorer
from attention_viz.ui.parts.selection import take_choice
from attention_viz.ui.runner.page import Page, Slots
from attention_viz.ui.selection import Group

# The explorer's height on a wide screen.
_HEIGHT = 600
# The panel with the predictions.
CANDIDATES_TITLE, CANDIDATES_WIDTH = "Next token", 264
# What the explorer shows of a layer without a softmax.
MIXING, CHANNELS = ("weight", "arrived"), ("all", "one")


def _steps(choice: object, state: State) -> range:
    return range(state.more + 1)


def _mixes(choice: object, state: State) -> bool:
    return bool(state.facts.mixers)


def _picture(choice: object, state: State) -> bool:
    return state.facts.reads.medium == InputKind.PICTURE


@dataclass(frozen=True)
class ExploreChoice:
    """The Explore page's URL choices."""

    back: int = parameter(
        0, WholeNumber(_steps), "the position of the prediction, in tokens before the last", brief=True
    )
    blocked: str = parameter("", AnyText(longest=1_500), "the blocked image patches", applies=_picture, brief=True)
    mixing: str = parameter(
        "weight", OneOf(MIXING), "the numbers of a layer without a softmax", applies=_mixes, brief=True
    )
    channels: str = parameter(
        "all", OneOf(CHANNELS), "its channels: all together, or the one that `head` numbers", applies=_mixes, brief=True
    )


def _follow(_choice: ExploreChoice, before: State, after: State) -> Mapping[str, Any]:
    """Go to the last token if their number changes; block nothing in another picture."""
    return ({"back": 0} if before.more != after.more else {}) | ({"blocked": ""} if before.shown != after.shown else {})


EXPLORE = Group(ExploreChoice(), "explore-", follow=_follow)


def step(by: int) -> None:
    """Move by tokens, before the page reruns."""
    visit.pick(EXPLORE, back=max(0, visit.chosen(EXPLORE).back + by))


def block(patches: str) -> None:
    """Block these patches, or none, before the page reruns."""
    visit.pick(EXPLORE, blocked=patches)


@dataclass
class _Meanwhile:
    tried: bool = False


def _show_recorded(state: State, slots: Slots) -> Callable[[], None] | None:
    """Show the recording; return its model run, None if none is needed."""
    if visit.memory(_Meanwhile).tried or opening.opened() is not None or not reading.is_raw(state):
        return None
    payload = None if has_run(state.request) else recorded_payload(state.request)
    if payload is None:
        return None
    with slots["exports"]:
        st.badge("Recorded: shown until the model has run here", color="gray")
    with slots["picture"]:
        show_picture_of(payload, state.stream or next(iter(state.facts.heads)), state)
    return functools.partial(_run_meanwhile, state)


def _run_meanwhile(state: State) -> None:
    with contextlib.suppress(AttentionVizError):
        _ = payload_of(run_request(state.request, longest=SETTINGS.longest_text))
    visit.memory(_Meanwhile).tried = True


def show_picture_of(shown: bytes | Run, stream: str, state: State, pair: tuple[int, int] | None = None) -> None:
    """Draw the explorer, with the pair described."""
    shown_pair = pair or (state.query, state.key)
    part = shown.part(stream) if isinstance(shown, Run) else shown
    shows = visit.chosen(EXPLORE)
    mixing = {"arrived": shows.mixing == "arrived", "single": shows.channels == "one"}
    show_explorer(part, stream, state.layer, reading.head(state), _take_choice, pair=shown_pair, mixing=mixing)


def _take_choice() -> None:
    """Send the explorer's choice, with its view of layers without a softmax."""
    take_choice()
    choice = chosen() or {}
    mixing, channels = MIXING[bool(choice.get("arrived"))], CHANNELS[bool(choice.get("single"))]
    now = visit.chosen(EXPLORE)
    if choice and (mixing, channels) != (now.mixing, now.channels):
        visit.pick(EXPLORE, mixing=mixing, channels=channels)


def _layout(state: State, _row: ControlRow) -> Slots:
    notes = st.container()
    # This height holds until the page's style has arrived, which lets the explorer have its own.
    with st.container(key="stage", height=_HEIGHT, border=False):
        with st.container(key="views", horizontal=True):
            # Side by side, not one in the other: the explorer stays as it is while the panel comes and goes.
            picture, candidates = place_picture(state, SETTINGS.longest_text), _reserve_candidates(state)
        below = st.container()
    named = {"notes": notes, "candidates": candidates, "below": below, "words": st.container()}
    return Slots(picture, _HEIGHT, named)


def goes_on_for_sure(state: State) -> bool:
    """Return whether any text will have a predictions panel."""
    return state.facts.continues_text and opening.opened() is None


def _reserve_candidates(state: State) -> DeltaGenerator:
    slot = st.empty()
    if not goes_on_for_sure(state):
        return slot
    with slot.container(key="candidates", width=CANDIDATES_WIDTH):
        inside = st.empty()
    inside.markdown(f"**{CANDIDATES_TITLE}**")
    return inside


def _answer(state: State, _row: ControlRow) -> None:
    visit.settle(EXPLORE, state)


PAGE = Page(
    "Explore",
    "explore",
    row=functools.partial(pickers.choose, "Explore", with_readings=True, mixers=True),
    layout=_layout,
    groups=(EXPLORE,),
    controls=_answer,
    recorded=_show_recorded,
    heads_first=True,
)
