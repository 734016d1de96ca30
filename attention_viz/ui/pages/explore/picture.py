"""The explorer on the Explore page: of a run, or of a recorded one until that has been made."""

import contextlib
from dataclasses import dataclass

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.recorded import recorded_payload
from attention_viz.serving.runs import Drawn, draw, is_drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.pages.explore.places import Places
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.explorer import show_explorer
from attention_viz.ui.parts.selection import take_choice

__all__ = ["run_meanwhile", "show_picture_of", "show_recorded"]


@dataclass
class _Meanwhile:
    """Whether the run was made or tried, so that a recorded one isn't shown again in its place."""

    tried: bool = False


def show_recorded(state: State, places: Places) -> bool:
    """Show a recorded run of what is asked for, and say that it is one; False where there is none, or no need of it.

    Args:
        state: what the pickers say.
        places: from `hold_places`.
    """
    if visit.memory(_Meanwhile).tried or opening.opened() is not None or not reading.is_raw(state):
        return False
    payload = None if is_drawn(state.request) else recorded_payload(state.request)
    if payload is None:
        return False
    with places.downloads:
        st.badge("Recorded: shown until the model has run here", color="gray")
    show_picture_of(payload, state.stream or next(iter(state.facts.heads)), state, places)
    return True


def run_meanwhile(state: State) -> None:
    """Run what a recorded run is shown of; what goes wrong is told when the page is drawn next."""
    with contextlib.suppress(AttentionVizError):
        _ = draw(state.request, longest=SETTINGS.longest_text).payload
    visit.memory(_Meanwhile).tried = True


def show_picture_of(
    shown: bytes | Drawn, stream: str, state: State, places: Places, pair: tuple[int, int] | None = None
) -> None:
    """Show the explorer in its place.

    Args:
        shown: what was drawn, or the bytes of a recorded run.
        stream: which one the page shows.
        state: what the pickers say.
        places: from `hold_places`.
        pair: the positions that are told of the head; by default those that were chosen.
    """
    told = pair or (state.query, state.key)
    with places.explorer.picture():
        part = shown.part(stream) if isinstance(shown, Drawn) else shown
        show_explorer(part, stream, state.layer, reading.head(state), take_choice, places.head, pair=told)
