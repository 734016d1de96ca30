"""The explorer on the Explore page: of a run, or of a recorded one until that has been made."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.recorded import recorded_payload
from attention_viz.serving.runs import Run, has_run, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.packing.run import payload_of
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.explorer import show_explorer
from attention_viz.ui.parts.selection import take_choice
from attention_viz.ui.runner.page import Slots

__all__ = ["show_picture_of", "show_recorded"]


@dataclass
class _Meanwhile:
    """Whether the run was made or tried, so that a recorded one isn't shown again in its place."""

    tried: bool = False


def show_recorded(state: State, slots: Slots) -> Callable[[], None] | None:
    """Show the shipped recording of what is chosen, labelled as one; return what runs the model meanwhile.

    Returns:
        None if there is no recording, or no need of one.
    """
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
    """Run what a recorded run is shown of; what goes wrong is told when the page is drawn next."""
    with contextlib.suppress(AttentionVizError):
        _ = payload_of(run_request(state.request, longest=SETTINGS.longest_text))
    visit.memory(_Meanwhile).tried = True


def show_picture_of(shown: bytes | Run, stream: str, state: State, pair: tuple[int, int] | None = None) -> None:
    """Show the explorer in its place.

    Args:
        shown: what was drawn, or the bytes of a recorded run.
        pair: the positions that are told of the head; by default those that were chosen.
    """
    shown_pair = pair or (state.query, state.key)
    part = shown.part(stream) if isinstance(shown, Run) else shown
    show_explorer(part, stream, state.layer, reading.head(state), take_choice, pair=shown_pair)
